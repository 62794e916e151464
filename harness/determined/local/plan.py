"""Plans a local run: an entrypoint becomes one process on this machine. Pure."""

import itertools
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from determined.errors import ConfigError
from determined_launch.arguments import ROLES, UsageError, parse

TRIAL_CLASS = re.compile(r"[a-zA-Z0-9_.]+:[a-zA-Z0-9_.]+\Z")
_LAYER = "determined.launch."
_PYTHON = re.compile(r"python[0-9.]*\Z")
_REDIRECTION = re.compile(r"[0-9]*[<>]|&>")
_HARNESS = "determined.exec.harness"


@dataclass(frozen=True)
class LocalPlan:
    """The process to start. ``stripped`` names the omitted launch layers; ``is_trial`` is True for a trial class."""

    argv: tuple[str, ...]
    stripped: tuple[str, ...] = ()
    is_trial: bool = False

    @property
    def has_roles(self) -> bool:
        """Returns True for several programs, which the layer for roles starts in a local run as well."""
        return any(ROLES in word for word in self.argv)


def make(entrypoint: str | Sequence[str], *, python: str, test_mode: bool) -> LocalPlan:
    """Returns the plan. Raises ConfigError for launch arguments that the cluster would refuse as well.

    >>> make("nice python3 -m determined.launch.torch_distributed --trial m:C", python="py", test_mode=True).argv
    ('sh', '-c', 'nice py -m determined.exec.harness --test-mode m:C')
    """
    try:
        if not isinstance(entrypoint, str):
            words, layers, is_trial = _strip(list(entrypoint), python, test_mode)
            return LocalPlan(tuple(words), tuple(layers), is_trial)
        if TRIAL_CLASS.match(entrypoint.strip()):
            return LocalPlan(tuple(_trial(python, entrypoint.strip(), test_mode)), (), True)
        return _of_shell(entrypoint, python, test_mode)
    except UsageError as error:
        raise ConfigError(f"entrypoint: {error}") from None


def with_layers(entrypoint: str | Sequence[str], planned: LocalPlan, *, python: str) -> LocalPlan:
    """Returns the plan that starts the launch layers of the entrypoint, as the cluster does.

    A trial class without a layer gets ``torch_distributed``. Raises ConfigError for a script without a layer.

    >>> with_layers("m:C", LocalPlan((), (), True), python="py").argv
    ('py', '-m', 'determined.launch.torch_distributed', '--trial', 'm:C')
    """
    if planned.has_roles:
        return planned
    if planned.stripped:
        argv = ("sh", "-c", entrypoint) if isinstance(entrypoint, str) else tuple(entrypoint)
        return LocalPlan(argv, (), planned.is_trial)
    if planned.is_trial and isinstance(entrypoint, str):
        return LocalPlan((python, "-m", f"{_LAYER}torch_distributed", "--trial", entrypoint.strip()), (), True)
    raise ConfigError(
        "--slots: the entrypoint has no launch layer, so it is one process; "
        "for example: python3 -m determined.launch.torch_distributed python3 train.py"
    )


def _of_shell(line: str, python: str, test_mode: bool) -> LocalPlan:
    """Rewrites only the commands that start a layer, word by word, so that quotes and variables stay."""
    parts: list[str] = []
    layers: list[str] = []
    is_trial = False
    for part in _commands(line):
        words = _words(part)
        if any(word.startswith(_LAYER) for word in words):
            end = next((index for index, word in enumerate(words) if _REDIRECTION.match(word)), len(words))
            inner, found, trial = _strip(words[:end], shlex.quote(python), test_mode)
            words = inner + words[end:]
            layers += found
            is_trial = is_trial or trial
            part = f"{part[: len(part) - len(part.lstrip())]}{' '.join(words)}{part[len(part.rstrip()) :]}"
        parts.append(part)
    return LocalPlan(("sh", "-c", "".join(parts)), tuple(layers), is_trial)


def _strip(words: list[str], python: str, test_mode: bool) -> tuple[list[str], list[str], bool]:
    layers: list[str] = []
    is_trial = False
    while (at := _layer_at(words)) is not None:
        begin, flag = at
        module = words[flag + 1]
        if module == ROLES:
            parse(words[flag + 2 :], module=module, python=python)
            return [*words[:begin], python, *words[begin + 1 :]], layers, is_trial
        layers.append(module.removeprefix(_LAYER))
        line = parse(words[flag + 2 :], module=module, python=python)
        inner = list(line.command)
        if inner[1:3] == ["-m", _HARNESS]:
            inner, is_trial = _trial(python, inner[3], test_mode), True
        words = words[:begin] + inner
    return words, layers, is_trial


def _trial(python: str, name: str, test_mode: bool) -> list[str]:
    return [python, "-m", _HARNESS, *(["--test-mode"] if test_mode else []), name]


def _layer_at(words: Sequence[str]) -> tuple[int, int] | None:
    """Returns the positions of the Python that starts a layer and of its ``-m``; arguments of a script are no layer."""
    for index, (flag, module) in enumerate(itertools.pairwise(words)):
        if flag != "-m" or not module.startswith(_LAYER):
            continue
        begin = index - 1
        while begin >= 0 and words[begin].startswith("-"):
            begin -= 1
        if begin >= 0 and _PYTHON.match(words[begin].rpartition("/")[2]):
            return begin, index
    return None


def _commands(line: str) -> Iterator[str]:
    """Yields the commands of a shell line and the operators between them; their concatenation is the line."""
    begin = 0
    for index, character in _unquoted(line):
        is_redirection = character == "&" and (
            line[index - 1 : index] in (">", "<") or line[index + 1 : index + 2] == ">"
        )
        if character in ";&|\n()" and not is_redirection:
            yield line[begin:index]
            yield character
            begin = index + 1
    yield line[begin:]


def _words(command: str) -> list[str]:
    """Returns the words of a command with their quotes."""
    blanks = [index for index, character in _unquoted(command) if character in " \t"]
    edges = [-1, *blanks, len(command)]
    words = (command[start + 1 : end] for start, end in itertools.pairwise(edges))
    return [word for word in words if word]


def _unquoted(line: str) -> Iterator[tuple[int, str]]:
    """Yields the characters that have a meaning to the shell."""
    quote = ""
    skip = False
    for index, character in enumerate(line):
        if skip:
            skip = False
        elif quote:
            if character == quote:
                quote = ""
            elif character == "\\" and quote == '"':
                skip = True
        elif character == "\\":
            skip = True
        elif character in "'\"":
            quote = character
        else:
            yield index, character
