"""The user and group as which agents run a user's tasks: rules, and the form that agents get."""

import re
from collections.abc import Mapping
from typing import Any

from pydantic.alias_generators import to_camel

from determined.errors import BadRequest
from determined.link.messages import RunAs

MAX_NAME_CHARACTERS = 32
_FIELDS = ("agent_uid", "agent_user", "agent_gid", "agent_group")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*\$?")


def checked(given: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Returns the link to store; None for an empty one, which removes the link. Raises BadRequest."""
    values = {name: value for name, value in (given or {}).items() if value not in (None, "")}
    if not values:
        return None
    missing = [to_camel(name) for name in _FIELDS if name not in values]
    if missing:
        raise BadRequest(f"agentUserGroup has no {' and no '.join(missing)}; it needs all of uid, user, gid and group")
    for name in ("agent_user", "agent_group"):
        text = values[name]
        if len(text) > MAX_NAME_CHARACTERS or not _NAME.fullmatch(text):
            raise BadRequest(
                f"{text!r} is no name of a user or group: it must have 1 to {MAX_NAME_CHARACTERS} letters, digits, "
                "dots, hyphens or underscores, and begin with a letter or an underscore"
            )
    return {name: values[name] for name in _FIELDS}


def run_as(link: Mapping[str, Any] | None) -> RunAs | None:
    """Returns the identity for agents; None for a user without a link.

    Earlier versions stored links without a uid or gid, which name nobody, or without names.
    """
    if not link or link.get("agent_uid") is None or link.get("agent_gid") is None:
        return None
    return RunAs(
        uid=link["agent_uid"],
        gid=link["agent_gid"],
        user=link.get("agent_user") or "",
        group=link.get("agent_group") or "",
    )


def shown(user_id: int, link: Mapping[str, Any] | None) -> dict[str, Any]:
    """Returns the user and group of a user's tasks as older clients read them; root's without a link."""
    values = link or {}
    return {
        "id": 0,
        "user_id": user_id if values else 0,
        "uid": values.get("agent_uid") or 0,
        "user": values.get("agent_user") or "root",
        "gid": values.get("agent_gid") or 0,
        "group": values.get("agent_group") or "root",
    }
