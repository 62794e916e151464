"""What a job starts for a command: the launcher, the appended arguments, and how often it runs."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from determined.errors import ConfigError
from determined_workflows.batch import shell_words
from determined_workflows.batch.settings import DISTRIBUTED, LIGHTNING, STANDARD, SWEEP, TORCHRUN, JobSettings
from determined_workflows.batch.sweep import replace_id

Started = Literal["job", "node", "task"]
RANK_PROGRAM = 'python3 "${DETENT_RECORD}/task/run_rank.py" --'
"""Stands between ``srun`` and the program of the user: it unpacks data, and records how the rank ends."""
MAX_RESTARTS = 3
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_PYTHON = re.compile(r"(?:\S*/)?python(?:3(?:\.\d+)?)?\Z")
_OWN_LAUNCHERS = ("torch.distributed.launch", "torch.distributed.run")
_SRUN_SWITCHES = frozenset(
    (
        *("contiguous", "disable-status", "exact", "exclusive", "hold", "immediate", "interactive", "kill-on-bad-exit"),
        *("label", "multi-prog", "no-allocate", "no-kill", "overcommit", "overlap", "oversubscribe", "preserve-env"),
        *("pty", "quiet", "quit-on-interrupt", "reboot", "spread-job", "unbuffered", "use-min-nodes", "verbose"),
    )
)
"""Long options of ``srun`` without a value of their own word."""
_SRUN_SHORT_SWITCHES = frozenset("EHIKklOQsuvXZ")


@dataclass(frozen=True)
class CommandLine:
    """``text`` is for bash. ``started``: once in the job, which starts its own steps, or once per node or task."""

    text: str
    started: Started
    notes: tuple[str, ...] = ()

    @property
    def shown(self) -> str:
        """The command without our program in front of that of a rank."""
        return self.text.replace(f"{RANK_PROGRAM} ", "")


def plan(settings: JobSettings, command: str, sweep_id: str | None = None) -> CommandLine:
    """Returns what a job starts. Raises ConfigError if a distributed job or a sweep cannot run the command."""
    found = _planned(settings, command, sweep_id)
    return replace(found, notes=(*found.notes, *comment_note(command)))


def comment_note(command: str) -> tuple[str, ...]:
    """Returns a note about a comment inside the command, which takes all that follows with it."""
    words = shell_words.split(command)
    first = next((index for index, word in enumerate(words) if word.startswith("#")), None)
    if first is None:
        return ()
    return (f"for bash, all from {words[first].split()[0]!r} on is a comment: {' '.join(words[first:])[:80]}",)


def _planned(settings: JobSettings, command: str, sweep_id: str | None) -> CommandLine:
    if settings.kind == SWEEP:
        return CommandLine(replace_id(command, sweep_id) if sweep_id else command, "node")
    commands = _simple_commands(shell_words.split(command))
    if any(_program(words) == "srun" for words in commands):
        text = " ".join(" ".join(_with_rank_program(words)) for words in commands)
        return CommandLine(text, "job")
    if settings.kind == STANDARD:
        return CommandLine(command, "node")
    first = commands[0]
    start = _start(first)
    if _is_launcher(first[start:]):
        return CommandLine(command, "node")
    if not _PYTHON.match(first[start]) or settings.kind != DISTRIBUTED:
        raise ConfigError(
            "the command of a distributed job begins with python, srun, torchrun or "
            f"python -m torch.distributed.launch, not with {first[start]!r}; nothing was submitted"
        )
    if settings.launcher == TORCHRUN:
        own = [*first[:start], *_torchrun(settings), *_program_of_torchrun(first[start:])]
        return CommandLine(_joined(own, commands[1:]), "node")
    return CommandLine(_joined(_with_arguments(first, settings), commands[1:]), "task")


def _joined(first: Sequence[str], others: Sequence[Sequence[str]]) -> str:
    return " ".join(word for words in (first, *others) for word in words)


def _simple_commands(words: Sequence[str]) -> list[list[str]]:
    """Returns the words of each simple command; an operator begins the command behind it."""
    commands: list[list[str]] = [[]]
    for word in words:
        if word in shell_words.CONTROL:
            commands.append([])
        commands[-1].append(word)
    return commands


def _start(words: Sequence[str]) -> int:
    """Returns the index of the program: behind an operator and assignments of variables."""
    index = 1 if words[:1] and words[0] in shell_words.CONTROL else 0
    while index < len(words) - 1 and _ASSIGNMENT.match(words[index]):
        index += 1
    return index


def _program(words: Sequence[str]) -> str:
    start = _start(words)
    return words[start].rpartition("/")[2] if start < len(words) else ""


def _is_launcher(words: Sequence[str]) -> bool:
    is_module = bool(_PYTHON.match(words[0])) and words[1:2] == ["-m"] and words[2:3] != []
    return words[0].rpartition("/")[2] == "torchrun" or (is_module and words[2] in _OWN_LAUNCHERS)


def _torchrun(settings: JobSettings) -> list[str]:
    words = ["torchrun", "--nproc_per_node=${NUM_TRAINERS}"]
    if settings.nodes == 1:
        return [*words, "--nnodes=1", "--standalone"]
    meeting = ["--rdzv_id=${JOBID}", "--rdzv_backend=c10d", "--rdzv_endpoint=${MASTER_ADDR}:${MASTER_PORT}"]
    return [*words, "--nnodes=${NNODES}", *meeting, f"--max_restarts={MAX_RESTARTS}"]


def _program_of_torchrun(words: Sequence[str]) -> list[str]:
    """Returns what torchrun starts: without ``python``, unless Python has options that torchrun cannot pass on."""
    rest = list(words[1:])
    while rest and rest[0] == "-u":  # torchrun's own
        rest.pop(0)
    if rest and rest[0].startswith("-") and rest[0] != "-m":
        return ["--no_python", words[0], *rest]
    return rest


def _with_arguments(words: Sequence[str], settings: JobSettings) -> list[str]:
    """Appends the number of nodes and of GPUs, in place of those in the line, before a redirection of the output."""
    names = (settings.nodes_argument, "gpus")
    kept: list[str] = []
    is_value = False
    for word in words:
        name, equals, _ = word.partition("=")
        if is_value and not word.startswith("-"):
            is_value = False
            continue
        is_value = False
        if name.startswith("--") and name[2:].replace("-", "_") in names:
            is_value = not equals
            continue
        kept.append(word)
    gpus = "${NUM_TRAINERS}" if settings.gpus else "0"
    return [*kept, f"--{settings.nodes_argument}", "${NNODES}", "--gpus", gpus]


def _with_rank_program(words: Sequence[str]) -> list[str]:
    """Inserts our program behind ``srun`` and its options; options that cannot be told apart leave it as written."""
    start = _start(words)
    if _program(words) != "srun":
        return list(words)
    index = start + 1
    while index < len(words) and words[index].startswith("-"):
        index += 2 if _takes_next_word(words[index]) else 1
    if index >= len(words):
        return list(words)
    return [*words[:index], RANK_PROGRAM, *words[index:]]


def _takes_next_word(option: str) -> bool:
    if option.startswith("--"):
        return "=" not in option and option[2:] not in _SRUN_SWITCHES
    return len(option) == 2 and option[1] not in _SRUN_SHORT_SWITCHES


def is_per_task(settings: JobSettings, line: CommandLine) -> bool:
    """Returns True if each GPU has a task of its own: Lightning's form on Slurm."""
    return line.started == "task" or (line.started == "job" and settings.launcher == LIGHTNING)


LAYER = "python3 -m determined.launch.torch_distributed"
SRUN_DROPPED = "srun is dropped from the command: there are no steps of Slurm here"
_OF_ALLOCATION = frozenset(
    (
        *("nnodes", "nproc_per_node", "node_rank", "master_addr", "master_port", "local_addr", "standalone"),
        *("rdzv_id", "rdzv_backend", "rdzv_endpoint", "rdzv_conf"),
    )
)
"""Options of torchrun whose values are those of an allocation."""
_TORCHRUN_SWITCHES = frozenset(("standalone", "m", "module", "no_python", "run_path", "use_env", "virtual_local_rank"))


def plan_without_slurm(settings: JobSettings, command: str, sweep_id: str | None = None) -> CommandLine:
    """Returns what starts once on a machine without Slurm: Lightning and torchrun start their own processes there.

    Raises ConfigError if a distributed job or a sweep cannot run the command.
    """
    text, notes = _without_srun(command)
    is_as_written = bool(notes) and settings.kind == DISTRIBUTED
    line = CommandLine(text, "node") if is_as_written else plan(settings, text, sweep_id)
    return CommandLine(line.text, "node", (*line.notes, *notes))


def plan_for_cluster(settings: JobSettings, command: str, sweep_id: str | None = None) -> CommandLine:
    """Returns what starts in each container of an allocation: torchrun's part is that of our launch layer.

    Raises ConfigError as ``plan_without_slurm`` does.
    """
    if settings.kind != DISTRIBUTED:
        return plan_without_slurm(settings, command, sweep_id)
    text, notes = _without_srun(command)
    commands = _simple_commands(shell_words.split(text))
    first = commands[0]
    start = _start(first)
    words = first[start:]
    behind = _behind_torchrun(words)
    if behind is not None:
        overrides, program = _torchrun_options(behind)
        note = "torchrun becomes the launch layer torch_distributed: nodes, ranks and addresses are the allocation's"
        return _under_layer(first[:start], overrides, program, commands[1:], (*notes, note))
    if settings.launcher == TORCHRUN and words and _PYTHON.match(words[0]) and not notes and not _is_launcher(words):
        return _under_layer(first[:start], [], words, commands[1:], ())
    return plan_without_slurm(settings, command)


def _without_srun(command: str) -> tuple[str, tuple[str, ...]]:
    """Returns the command without ``srun`` and its options, and a note if it had any."""
    commands = _simple_commands(shell_words.split(command))
    if not any(_program(words) == "srun" for words in commands):
        return command, ()
    kept = []
    for words in commands:
        if _program(words) == "srun":
            start = _start(words)
            behind = _behind_srun(words, start)
            if behind >= len(words):
                raise ConfigError("srun has no program behind it; write the whole command into the command file")
            kept.append([*words[:start], *words[behind:]])
        else:
            kept.append(words)
    return _joined([], kept), (SRUN_DROPPED,)


def _behind_srun(words: Sequence[str], start: int) -> int:
    index = start + 1
    while index < len(words) and words[index].startswith("-"):
        index += 2 if _takes_next_word(words[index]) else 1
    return index


def _behind_torchrun(words: Sequence[str]) -> Sequence[str] | None:
    """Returns the words behind ``torchrun``, None for another program."""
    if words and words[0].rpartition("/")[2] == "torchrun":
        return words[1:]
    is_module = len(words) > 2 and bool(_PYTHON.match(words[0])) and list(words[1:3]) == ["-m", "torch.distributed.run"]
    return words[3:] if is_module else None


def _torchrun_options(words: Sequence[str]) -> tuple[list[str], Sequence[str]]:
    """Returns options for the launch layer, and the program with its arguments. Raises ConfigError without one."""
    kept: list[str] = []
    index = 0
    while index < len(words) and words[index].startswith("-"):
        name, equals, _ = words[index].lstrip("-").partition("=")
        name = name.replace("-", "_")
        end = index + (1 if equals or name in _TORCHRUN_SWITCHES else 2)
        if name not in _OF_ALLOCATION:
            kept += words[index:end]
        index = end
    if index >= len(words):
        raise ConfigError("torchrun has no script behind its options; write the whole command into the command file")
    return kept, words[index:]


def _under_layer(
    before: Sequence[str],
    overrides: Sequence[str],
    program: Sequence[str],
    others: Sequence[Sequence[str]],
    notes: tuple[str, ...],
) -> CommandLine:
    words = [*before, LAYER, *overrides, *(["--"] if overrides else []), *program]
    return CommandLine(_joined(words, others), "node", notes)
