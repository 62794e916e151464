"""Reads and checks the file of ``determined.launch.roles``: the roles of a trial and the processes of each."""

import difflib
import json
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from determined_launch import environment
from determined_launch.errors import UsageError
from determined_launch.regular_files import read_regular

MAX_BYTES = 1 << 20
MAX_PROCESSES = 1024
"""Maximum number of processes of one trial; the agent reads no more exit records."""
_MAX_NAME = 63
_NAME = re.compile(r"[a-z][a-z0-9_-]*\Z")
_MODULE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*\Z")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_OURS = frozenset(
    {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", environment.VISIBLE_DEVICES}
)
_FILE_KEYS = ("preload", "roles")
_ROLE_KEYS = ("name", "count", "slots", "command", "environment", "daemon")

Fault = tuple[str, str]
"""The path of a faulty value in the file, and what is wrong with it."""


@dataclass(frozen=True)
class Role:
    """A named group of equal processes.

    ``slots`` is the number of slots of each process. A daemon is ended when all other processes have ended.
    """

    name: str
    command: tuple[str, ...]
    count: int = 1
    slots: int = 0
    environment: Mapping[str, str] = field(default_factory=dict)
    is_daemon: bool = False


@dataclass(frozen=True)
class RoleFile:
    """The content of a checked file. ``preload`` names modules to import once for all processes of a container."""

    roles: tuple[Role, ...]
    preload: tuple[str, ...] = ()


def read(path: Path, *, largest: int) -> RoleFile:
    """Returns the roles. ``largest`` is the number of slots of the largest container.

    Raises UsageError with every fault of the file.
    """
    try:
        text = read_regular(path.resolve(), MAX_BYTES).decode("utf-8")
        value = json.loads(text, object_pairs_hook=_object)
    except FileNotFoundError:
        raise UsageError(f"there is no file {path} in the working folder, which is {Path.cwd()}") from None
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
    except RecursionError:
        raise UsageError(f"{path} is nested too deeply") from None
    except ValueError as error:
        raise UsageError(f"{path} is not JSON in UTF-8: {error}") from None
    faults = list(_faults(value, largest))
    if faults:
        count = "a fault" if len(faults) == 1 else f"{len(faults)} faults"
        lines = "".join(f"\n  {where + ': ' if where else ''}{what}" for where, what in faults)
        raise UsageError(f"{path} has {count}:{lines}")
    return RoleFile(tuple(map(_role, value["roles"])), tuple(value.get("preload", ())))


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, value in pairs:
        if name in values:
            raise ValueError(f"the key {json.dumps(name)} is twice in one object")
        values[name] = value
    return values


def _role(value: Mapping[str, Any]) -> Role:
    return Role(
        name=value["name"],
        command=tuple(value["command"]),
        count=value.get("count", 1),
        slots=value.get("slots", 0),
        environment=dict(value.get("environment", {})),
        is_daemon=value.get("daemon", False),
    )


def _faults(value: object, largest: int) -> Iterator[Fault]:
    if not isinstance(value, dict):
        yield "", 'write an object: {"roles": [{"name": "trainer", "slots": 1, "command": ["python3", "train.py"]}]}'
        return
    yield from _unknown(value, _FILE_KEYS, "")
    yield from _preload(value.get("preload", []))
    roles = value.get("roles")
    if not isinstance(roles, list) or not roles:
        yield "roles", "write a list of at least one role"
        return
    for index, role in enumerate(roles):
        yield from _role_faults(role, f"roles[{index}]", largest)
    yield from _together([role for role in roles if isinstance(role, dict)])


def _together(roles: Sequence[Mapping[str, Any]]) -> Iterator[Fault]:
    """Yields the faults of the roles as a group."""
    names = [role.get("name") for role in roles]
    for index, name in enumerate(names):
        if isinstance(name, str) and name in names[:index]:
            yield f"roles[{index}].name", f"{name} is the name of roles[{names.index(name)}] too; choose another one"
    if all(role.get("daemon") is True for role in roles):
        yield "roles", "all roles are daemons, so nothing says when the trial ends; take daemon from one of them"
    counts = [role.get("count", 1) for role in roles]
    total = sum(count for count in counts if _is_whole(count) and count > 0)
    if total > MAX_PROCESSES:
        yield "roles", f"{total} processes are more than {MAX_PROCESSES}, the most that one trial can have"


def _role_faults(role: object, path: str, largest: int) -> Iterator[Fault]:
    if not isinstance(role, dict):
        yield path, 'write an object with "name" and "command"'
        return
    yield from _unknown(role, _ROLE_KEYS, f"{path}.")
    checks: Mapping[str, Callable[[Any], str]] = {
        "name": _name,
        "command": _command,
        "count": lambda count: "" if _is_whole(count) and count >= 1 else "write a whole number of at least 1",
        "slots": lambda slots: _slots(slots, largest),
        "daemon": lambda daemon: "" if isinstance(daemon, bool) else "write true or false",
    }
    for key, check in checks.items():
        if key in role:
            what = check(role[key])
            if what:
                yield f"{path}.{key}", f"{what}; found: {_shown(role[key])}"
        elif key in ("name", "command"):
            yield f"{path}.{key}", f"is missing; {check(None)}"
    yield from _environment(role.get("environment", {}), f"{path}.environment")


def _name(name: object) -> str:
    if isinstance(name, str) and _NAME.match(name) and len(name) <= _MAX_NAME:
        return ""
    return f"write a lowercase letter, then letters, digits, _ and -, at most {_MAX_NAME} in all"


def _command(words: object) -> str:
    if isinstance(words, str) and words.strip():
        try:
            return f"write a list of words: {json.dumps(shlex.split(words))}"
        except ValueError:
            return "write a list of words"
    if not isinstance(words, list) or not words or not all(isinstance(word, str) for word in words):
        return 'write a list of words: ["python3", "train.py"]'
    if not words[0]:
        return "the first word is the program, and it is empty"
    return "a word has a NUL character" if any("\0" in word for word in words) else ""


def _slots(slots: object, largest: int) -> str:
    if not _is_whole(slots) or slots < 0:  # type: ignore[operator]  # a number here
        return "write a whole number, 0 for a process without a slot"
    if slots > largest:  # type: ignore[operator]  # likewise
        one = "1 slot" if largest == 1 else f"{largest} slots"
        return f"a process has its slots in one container, and the largest container of this trial has {one}"
    return ""


def _environment(variables: object, path: str) -> Iterator[Fault]:
    if not isinstance(variables, dict):
        yield path, f'write an object of strings: {{"NAME": "value"}}; found: {_shown(variables)}'
        return
    for name, value in variables.items():
        where = f"{path}.{name}"
        if not _VARIABLE.match(name):
            yield where, "the name of a variable has letters, digits and _ only"
        elif name in _OURS or name.startswith("DET_"):
            yield where, "the launch layer sets this variable; remove it"
        elif not isinstance(value, str):
            yield where, f"write a string: {_shown(str(value))}; found: {_shown(value)}"
        elif "\0" in value or environment.is_too_long(name, value):
            yield where, "the value has a NUL character or is longer than a variable can be"


def _preload(modules: object) -> Iterator[Fault]:
    if not isinstance(modules, list):
        yield "preload", f'write a list of modules: ["torch"]; found: {_shown(modules)}'
        return
    for index, module in enumerate(modules):
        if not isinstance(module, str) or not _MODULE.match(module):
            yield f"preload[{index}]", f'write the name of a module, for example "torch"; found: {_shown(module)}'


def _unknown(value: Mapping[str, Any], known: Sequence[str], path: str) -> Iterator[Fault]:
    for key in value:
        if key not in known:
            near = difflib.get_close_matches(key, known, 1)
            hint = f'did you mean "{near[0]}"?' if near else f"the keys are {', '.join(known)}"
            yield f"{path}{key}", f"unknown key; {hint}"


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _shown(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:59]}…"
