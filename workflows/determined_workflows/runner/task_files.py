"""The files of a task: ``param``, ``stat`` and logs. Each file is replaced as a whole."""

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from determined_workflows.runner.supervisor import Start, store

RUNNING, FINISHED, FAILED = "running", "finished", "failed"
_DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


@dataclass(frozen=True)
class TaskFiles:
    """The files of one task in ``folder``. ``suffix`` tells apart tasks that share a folder."""

    folder: Path
    suffix: str = ""
    states: dict[str, str] = field(default_factory=dict)

    @property
    def param(self) -> Path:
        return self.folder / f"param{self.suffix}"

    @property
    def stat(self) -> Path:
        return self.folder / f"stat{self.suffix}"

    def log(self, command: str, time: str) -> Path:
        return self.folder / f"log.{command}.{time}{self.suffix}"

    def load(self) -> None:
        """Reads the states of earlier runs."""
        self.states.clear()
        if self.folder.exists():  # in a new folder nothing is looked for
            self.states.update(read_stat(self.stat))

    def write_stat(self) -> None:
        """Writes the states. Raises OSError."""
        store(self.stat, self._text(self.states))

    def start(self, command: str, line: str, resource: str, log: Path | None) -> Start:
        """Returns what the supervisor needs for a command: ``line`` for bash, and the texts of ``stat``."""
        running, finished, failed = (self._text_with(command, state) for state in (RUNNING, FINISHED, FAILED))
        return Start(line, resource, None if log is None else str(log), str(self.stat), running, finished, failed)

    def _text_with(self, command: str, state: str) -> str:
        return self._text({**self.states, command: state})

    def _text(self, states: Mapping[str, str]) -> str:
        return "".join(_line(name, each, repr(each)) for name, each in states.items())

    def write_param(self, params: Mapping[str, Any], scripts: Mapping[str, str]) -> None:
        """Writes parameters and scripts. Scripts of commands that do not run this time are kept. Raises OSError."""
        older = read_mapping(self.param).get("_scripts") if self.states else None
        kept = older if isinstance(older, dict) else {}
        store(self.param, _dump({**dict(sorted(params.items())), "_scripts": {**kept, **scripts}}))


def read_stat(path: Path) -> dict[str, str]:
    """Returns command → state. In older files a command has a mapping with the key ``state``."""
    found = {}
    for command, state in read_mapping(path).items():
        found[str(command)] = str(state.get("state") if isinstance(state, dict) else state)
    return found


def read_mapping(path: Path) -> dict[str, Any]:
    """Returns the content of a YAML file, or nothing if the file is missing or damaged."""
    try:
        found = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError):
        return {}
    return found if isinstance(found, dict) else {}


@functools.lru_cache(maxsize=1024)
def _line(name: str, value: str | int | float | bool, _shown: str) -> str:
    """Returns one line of a file. ``_shown`` tells apart equal values, such as 1 and true, in the cache."""
    return _dump({name: value})


def _dump(content: Mapping[str, Any]) -> str:
    text: str = yaml.dump(dict(content), Dumper=_DUMPER, width=2**20, allow_unicode=True, sort_keys=False)
    return text
