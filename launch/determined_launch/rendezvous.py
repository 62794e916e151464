"""Reads who takes part in this allocation, as the boot step wrote it."""

import json
from collections.abc import Mapping
from pathlib import Path

from determined_launch import environment
from determined_launch.environment import RendezvousFacts


def path(environ: Mapping[str, str]) -> Path:
    """Where the facts of this container's run stand."""
    return Path(environ.get(environment.RUN_DIR, environment.DEFAULT_RUN_DIR), "info", "rendezvous.json")


def read(environ: Mapping[str, str]) -> RendezvousFacts:
    """The facts; off the cluster one container on this machine with the slots the environment names, or one."""
    try:
        text = path(environ).read_text(encoding="utf-8")
    except FileNotFoundError:
        slots = json.loads(environ.get(environment.SLOT_IDS) or "[]")
        return RendezvousFacts(("127.0.0.1",), 0, (max(1, len(slots)),))
    return RendezvousFacts.from_json(json.loads(text))


def write(facts: RendezvousFacts, environ: Mapping[str, str]) -> None:
    """Written whole or not at all: a launch layer may read while the boot step writes."""
    target = path(environ)
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_suffix(".partial")
    partial.write_text(json.dumps(facts.to_json()), encoding="utf-8")
    partial.replace(target)
