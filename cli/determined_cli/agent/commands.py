"""Commands of ``det agent`` and ``det slot``."""

import sys
from argparse import Namespace
from datetime import UTC, datetime
from typing import Any

from determined.client import agents
from determined.client.session import Session
from determined.errors import BadRequest
from determined_cli import add_agent, connection
from determined_cli.output import render
from determined_cli.output.row_selection import select
from determined_cli.terminal.messages import say
from determined_cli.up import data_folder

AGENT_COLUMNS = (
    ("Agent ID", "id"),
    ("Version", "version"),
    ("Registered Time", "registered_time"),
    ("Slots", "slots"),
    ("Containers", "containers"),
    ("Resource Pool", "resource_pool"),
    ("Enabled", "enabled"),
    ("Draining", "draining"),
    ("Addresses", "addresses"),
)

SLOT_COLUMNS = (
    ("Agent ID", "agent_id"),
    ("Resource Pool", "resource_pool"),
    ("Slot ID", "slot_id"),
    ("Enabled", "enabled"),
    ("Draining", "draining"),
    ("Status", "status"),
    ("Container ID", "container_id"),
    ("Task Name", "task"),
    ("Type", "type"),
    ("Device", "device"),
    ("Reason", "reason"),
)


def list_agents(args: Namespace) -> None:
    """Lists agents; on a terminal, or if there are no agents, also prints the command that adds one."""
    session = connection.connect(args.options)
    listed = agents.list_all(session)
    rows = [
        {
            **render.snake({key: agent.get(key) for key in ("id", "version", "registeredTime", "enabled", "draining")}),
            "slots": len(agent.get("slots") or {}),
            "containers": len(agent.get("containers") or {}),
            "resource_pool": ", ".join(agent.get("resourcePools") or []),
            "addresses": ", ".join(agent.get("addresses") or []),
        }
        for agent in listed
    ]
    render.show(args.format, *select(args, AGENT_COLUMNS, sorted(rows, key=lambda row: str(row["id"]))))
    for agent in listed:
        if agent.get("warning"):
            say(f"warning: {agent['warning']}")
        if args.format == "table" and agent.get("leavesAt"):
            say(_departure(agent, datetime.now(UTC)))
    if args.format == "table" and (not rows or sys.stdout.isatty()):
        token = data_folder.default() / "agent-token"
        say(add_agent.hint(session.master, token if token.exists() else "agent-token"))


def _departure(agent: dict[str, Any], now: datetime) -> str:
    """Returns when and why an agent ends by itself."""
    at = datetime.fromisoformat(agent["leavesAt"])
    minutes = max(0, round((at - now).total_seconds() / 60))
    closed = ", nothing new is placed on it" if agent.get("leaving") else ""
    return f"agent {agent['id']} leaves in {minutes} min ({at:%H:%M} UTC): {agent['leavesWhy']}{closed}"


def _number(key: str) -> int:
    """Returns the number of a slot of its key, ``/agents/AGENT/slots/0``, or ``000`` of earlier masters."""
    number = key.rpartition("/")[2]
    return int(number) if number.isdecimal() else 0


def list_slots(args: Namespace) -> None:
    """Lists slots and the container that holds each."""
    session = connection.connect(args.options)
    found = agents.list_all(session)
    held = any(slot.get("container") for agent in found for slot in (agent.get("slots") or {}).values())
    tasks = _names_by_container(session.get("/api/v1/tasks")) if held else {}
    rows = []
    for agent in sorted(found, key=lambda each: str(each["id"])):
        for key, slot in sorted((agent.get("slots") or {}).items(), key=lambda each: _number(each[0])):
            device = slot.get("device") or {}
            container = (slot.get("container") or {}).get("id")
            rows.append(
                {
                    "agent_id": agent["id"],
                    "resource_pool": ", ".join(agent.get("resourcePools") or []),
                    "slot_id": slot.get("id") or key,
                    "enabled": slot.get("enabled"),
                    "draining": slot.get("draining"),
                    "container_id": container or "FREE",
                    "task": tasks.get(container, "") if container else "",
                    "type": str(device.get("type") or "").removeprefix("TYPE_").lower(),
                    "device": device.get("brand"),
                    "status": slot.get("status"),
                    "reason": slot.get("reason") or "",
                }
            )
    render.show(args.format, *select(args, SLOT_COLUMNS, rows))


def _names_by_container(answer: dict[str, Any]) -> dict[str, str]:
    return {
        part["containerId"]: str(summary.get("name") or summary.get("taskId"))
        for summary in (answer.get("allocationIdToSummary") or {}).values()
        for part in summary.get("resources") or []
        if part.get("containerId")
    }


def enable(args: Namespace) -> None:
    """Enables one agent, or all agents."""
    session = connection.connect(args.options)
    for agent_id in _chosen(args, session):
        agents.enable(session, agent_id)
        say(f"enabled agent {agent_id}")


def disable(args: Namespace) -> None:
    """Disables one agent, or all agents."""
    session = connection.connect(args.options)
    for agent_id in _chosen(args, session):
        agents.disable(session, agent_id, drain=args.drain)
        say(f"{'draining' if args.drain else 'disabled'} agent {agent_id}")


def enable_slot(args: Namespace) -> None:
    """Enables a slot."""
    agents.set_slot(connection.connect(args.options), args.agent_id, args.slot_id, enabled=True)
    say(f"enabled slot {args.slot_id} of agent {args.agent_id}")


def disable_slot(args: Namespace) -> None:
    """Disables a slot."""
    agents.set_slot(connection.connect(args.options), args.agent_id, args.slot_id, enabled=False)
    say(f"disabled slot {args.slot_id} of agent {args.agent_id}")


def _chosen(args: Namespace, session: Session) -> list[str]:
    if bool(args.agent_id) == args.all:
        raise BadRequest("give one agent ID, or --all")
    return [args.agent_id] if args.agent_id else [str(agent["id"]) for agent in agents.list_all(session)]
