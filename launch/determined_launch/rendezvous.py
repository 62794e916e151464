"""Reads the containers of this allocation from the file that the boot step wrote."""

import json
from collections.abc import Mapping
from pathlib import Path

from determined_launch import environment
from determined_launch.environment import RendezvousFacts


def path(environ: Mapping[str, str]) -> Path:
    """Returns the path of the file in this container's run folder."""
    return Path(environ.get(environment.RUN_DIR, environment.DEFAULT_RUN_DIR), "info", "rendezvous.json")


def is_known(environ: Mapping[str, str]) -> bool:
    """Returns True if the file exists, which the agent writes for a container that is alone in its allocation."""
    return path(environ).is_file()


def read(environ: Mapping[str, str]) -> RendezvousFacts:
    """Returns the containers; off the cluster one container with the slots that the environment names, or one slot."""
    try:
        text = path(environ).read_text(encoding="utf-8")
    except FileNotFoundError:
        slots = json.loads(environ.get(environment.SLOT_IDS) or "[]")
        return RendezvousFacts(("127.0.0.1",), 0, (max(1, len(slots)),))
    return RendezvousFacts.from_json(json.loads(text))


def write(facts: RendezvousFacts, environ: Mapping[str, str]) -> None:
    """Writes the file atomically because a launch layer may read while the boot step writes."""
    target = path(environ)
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_suffix(".partial")
    partial.write_text(json.dumps(facts.to_json()), encoding="utf-8")
    partial.replace(target)
