"""The settings of a job, read from the flags of ``det batch run`` and checked."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from determined.errors import ConfigError
from determined_workflows.batch import durations

STANDARD, DISTRIBUTED, SWEEP = KINDS = ("standard", "distributed", "sweep")
TORCHRUN, LIGHTNING = LAUNCHERS = ("torchrun", "lightning")
_OLDER_LAUNCHERS = {"script": TORCHRUN}
DEFAULT_CPUS, DEFAULT_MEMORY, DEFAULT_TIME, DEFAULT_NAME = "2", "10G", "00-01:00:00", "experiment"
NODES_ARGUMENT = "nnodes"
MAX_NAME_LENGTH = 100
MAX_COUNT = 1_000_000
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*\Z")
_WORD = re.compile(r"[A-Za-z0-9_.,:+@-]+\Z")


@dataclass(frozen=True)
class JobSettings:
    """What a job needs and is called. ``typed`` has the flags that the user has given, by their names here."""

    kind: str = STANDARD
    launcher: str | None = None
    gpus: int = 0
    gpu_type: str | None = None
    cpus: int = 2
    nodes: int = 1
    memory: str = DEFAULT_MEMORY
    memory_per_gpu: str | None = None
    time: str = DEFAULT_TIME
    partition: str | None = None
    account: str | None = None
    exp_name: str = DEFAULT_NAME
    data: tuple[str, ...] = ()
    container: str | None = None
    workdir: str | None = None
    nodes_argument: str = NODES_ARGUMENT
    is_requeued: bool = False
    typed: frozenset[str] = frozenset()

    @property
    def label(self) -> str:
        """The first part of the output's name: the launcher of a distributed job, else the kind."""
        return self.launcher if self.kind == DISTRIBUTED and self.launcher else self.kind


def read(flags: Mapping[str, Any]) -> tuple[JobSettings, list[str]]:
    """Returns the settings and notes about flags without effect. ``flags``: values as typed, None if not given.

    Raises ConfigError, which names the flag, its value, and what is valid.
    """
    given = {name: value for name, value in flags.items() if value not in (None, [], False)}
    kind = given.get("kind", STANDARD)
    if kind not in KINDS:
        raise _invalid("--job-type", kind, ", ".join(KINDS))
    launcher = _launcher(kind, given.get("launcher"))
    notes = []
    nodes = _count("--nodes", given.get("nodes", "1"), least=1)
    if nodes > 1 and kind != DISTRIBUTED:
        notes.append(f"a {kind} job has one node; --nodes {nodes} has an effect with --job-type distributed")
        nodes = 1
    if launcher and kind != DISTRIBUTED:
        notes.append("--which-distributed has an effect with --job-type distributed only")
        launcher = None
    gpus = _count("--gpus", given.get("gpus", "1" if kind == SWEEP else "0"))
    if given.get("gpu_type") and not gpus:
        notes.append(f"--gpu-type {given['gpu_type']} has an effect with --gpus N only")
    settings = JobSettings(
        kind=kind,
        launcher=launcher,
        gpus=gpus,
        gpu_type=_word("--gpu-type", given.get("gpu_type")),
        cpus=_count("--cpus", given.get("cpus", DEFAULT_CPUS), least=1),
        nodes=nodes,
        memory=_size("--mem", given.get("memory", DEFAULT_MEMORY)),
        memory_per_gpu=_size("--mem-per-gpu", given["memory_per_gpu"]) if "memory_per_gpu" in given else None,
        time=_time(given.get("time", DEFAULT_TIME)),
        partition=_word("--partition", given.get("partition")),
        account=_word("--account", given.get("account")),
        exp_name=_name(given.get("exp_name", DEFAULT_NAME)),
        data=tuple(dict.fromkeys(given.get("data", ()))),
        container=given.get("container"),
        workdir=given.get("workdir"),
        nodes_argument=_word("--nodes-argument", given.get("nodes_argument", NODES_ARGUMENT)) or NODES_ARGUMENT,
        is_requeued=bool(given.get("requeue")),
        typed=frozenset(given),
    )
    if settings.memory_per_gpu and not gpus:
        raise ConfigError("--mem-per-gpu needs --gpus N; --mem is the memory of a job without GPUs")
    return settings, notes


def check_sweep(flags: Mapping[str, Any]) -> tuple[int | None, int | None]:
    """Returns the number of a sweep's runs and how many run at once, as given. Raises ConfigError."""
    count, parallel = flags.get("count"), flags.get("max_parallel")
    return (
        None if count is None else _count("--count", count, least=1),
        None if parallel is None else _count("--max-parallel", parallel, least=1),
    )


def count_of(flag: str, text: str, *, least: int = 1) -> int:
    """Returns a whole number that a flag or an answer gives. Raises ConfigError."""
    return _count(flag, text, least=least)


def _launcher(kind: str, text: str | None) -> str | None:
    if text is None:
        if kind == DISTRIBUTED:
            raise ConfigError(
                "a distributed job needs its launcher: -W torchrun or -W lightning (--which-distributed); nothing was "
                "submitted"
            )
        return None
    launcher = _OLDER_LAUNCHERS.get(text, text)
    if launcher not in LAUNCHERS:
        raise _invalid("--which-distributed", text, ", ".join(LAUNCHERS))
    return launcher


def _count(flag: str, text: str, *, least: int = 0) -> int:
    number = int(text) if re.fullmatch(r"[0-9]{1,7}", text) else -1
    if not least <= number <= MAX_COUNT:
        raise _invalid(flag, text, f"a whole number of {least} or more")
    return number


def _size(flag: str, text: str) -> str:
    if not durations.is_size(text):
        raise _invalid(flag, text, "a number with K, M, G or T, such as 10G")
    return text


def _time(text: str) -> str:
    try:
        durations.seconds(text)
    except ValueError:
        raise _invalid(
            "--time", text, "dd-HH:MM:SS, such as 00-01:00:00 for one hour; minutes alone count too"
        ) from None
    return text


def _name(text: str) -> str:
    if not _NAME.match(text) or len(text) > MAX_NAME_LENGTH:
        raise _invalid("--exp-name", text, "letters, digits, dots, hyphens and underscores; it names files")
    return text


def _word(flag: str, text: str | None) -> str | None:
    if text is not None and not _WORD.match(text):
        raise _invalid(flag, text, "one word without spaces")
    return text


def _invalid(flag: str, value: object, valid: str) -> ConfigError:
    return ConfigError(f'{flag} "{value}" is not valid: {valid}; nothing was submitted')


def as_record(settings: JobSettings) -> dict[str, Any]:
    """Returns the settings as plain data for the record of a job."""
    values: dict[str, Any] = {}
    for name in JobSettings.__dataclass_fields__:
        value: object = getattr(settings, name)
        is_list = isinstance(value, (tuple, frozenset, Sequence)) and not isinstance(value, str)
        values[name] = sorted(value) if is_list else value  # type: ignore[call-overload]
    return values
