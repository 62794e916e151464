"""Reference of the command line: every noun, verb, argument and flag of ``det``."""

import argparse
from collections.abc import Iterator, Sequence
from importlib import import_module

from determined_cli import command_table
from determined_cli.command import Command
from generate.markdown import cell, code, table

HEAD = """# Command line

`det NOUN VERB [OPTIONS]`. Short names of nouns and verbs are given in brackets. `det NOUN VERB --help` prints
the same, and `det completion bash` (or `zsh`, `fish`) prints a script that completes nouns, verbs, options, ids and
paths.

Options before the noun:

| option | meaning |
|---|---|
| `-m`, `--master URL` | the master; else `DET_MASTER`, else the master of `det up`, else `http://localhost:8080` |
| `-u`, `--user USER` | the user to act as; else `DET_USER`, else the user who logged in last |
| `--no-color` | no colours |
| `--version` | the version of this client |

## Exit codes

| code | meaning |
|---|---|
| 0 | success |
| 1 | the command failed, or the experiment that it waited for did not complete |
| 2 | the command line is wrong |
| 3 | no such object |
| 4 | the configuration or the context cannot be used |
| 5 | not logged in, or not allowed |
| 6 | the master cannot be reached |
| 7 | the state of the object does not allow it |
| 8 | a time limit was reached |
| 9 | canceled or killed (only commands that Determined does not have) |
| 130 | interrupted by Ctrl-C |
"""


def page() -> str:
    """Returns the whole page."""
    return "\n".join([HEAD, *(part for noun in command_table.NOUNS for part in _noun(noun)), *_not_offered()])


def not_offered() -> Iterator[tuple[str, str]]:
    """Yields each command of Determined's client that is missing here, and what to use instead."""
    for noun, instead in command_table.NOT_OFFERED.items():
        yield f"det {noun}", instead
    for noun, verbs in command_table.NOT_OFFERED_VERBS.items():
        for verb, instead in verbs.items():
            yield f"det {noun} {verb}", instead


def _not_offered() -> Iterator[str]:
    yield "## Commands of Determined that are missing\n"
    yield "`det` answers each of them with this text and with exit code 2.\n"
    yield table(("command", "instead"), ((code(words), cell(_sentence(instead))) for words, instead in not_offered()))


def commands() -> Iterator[tuple[str, Command]]:
    """Yields every command with its words, such as ``det experiment create``."""
    for noun in command_table.NOUNS:
        yield from _verbs(f"det {noun}", _of_noun(noun))


def _of_noun(noun: str) -> Sequence[Command]:
    module = import_module(command_table.NOUNS[noun][0])
    verbs: Sequence[Command] = module.VERBS
    return [verb for verb in verbs if verb.name == noun] if noun in module.NOUNS_WITHOUT_VERBS else verbs


def _verbs(prefix: str, verbs: Sequence[Command]) -> Iterator[tuple[str, Command]]:
    for verb in verbs:
        words = prefix if prefix == f"det {verb.name}" else f"{prefix} {verb.name}"
        if verb.verbs:
            yield from _verbs(words, verb.verbs)
        else:
            yield words, verb


def _noun(noun: str) -> Iterator[str]:
    _, help_, short = command_table.NOUNS[noun]
    yield f"## det {noun}{_aliases(short)}\n"
    yield f"{_sentence(help_)}\n"
    for words, verb in _verbs(f"det {noun}", _of_noun(noun)):
        if words != f"det {noun}":
            yield f"### {words}{_aliases(verb.aliases)}\n"
            yield f"{_sentence(verb.help)}\n"
        yield from _options(words, verb)


def flags(verb: Command) -> Iterator[str]:
    """Yields the options of a command that its help shows."""
    for action in _actions(_parser("", verb)):
        yield from action.option_strings


def _parser(words: str, verb: Command) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(words, add_help=False, formatter_class=lambda prog: _wide(prog))
    for add in verb.arguments:
        add(parser)
    return parser


def _actions(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    shown = parser._actions  # noqa: SLF001  # argparse has no public list of its options
    return [action for action in shown if action.help is not argparse.SUPPRESS]


def _options(words: str, verb: Command) -> Iterator[str]:
    parser = _parser(words, verb)
    usage = " ".join(parser.format_usage().removeprefix("usage: ").split())
    yield f"```text\n{usage}\n```\n"
    actions = _actions(parser)
    if actions:
        rows = ((_name(action), cell(_sentence(action.help or ""))) for action in actions)
        yield table(("argument", "meaning"), rows)
    if verb.examples:
        yield "```text\n" + "\n".join(verb.examples) + "\n```\n"


def _wide(prog: str) -> argparse.HelpFormatter:
    return argparse.HelpFormatter(prog, width=10_000)


def _name(action: argparse.Action) -> str:
    if not action.option_strings:
        return code(action.metavar or action.dest)
    names = ", ".join(code(name) for name in action.option_strings)
    if action.nargs == 0:
        return names
    value = action.metavar or ("|".join(map(str, action.choices)) if action.choices else action.dest.upper())
    return f"{names} {code(value)}"


def _aliases(names: Sequence[str]) -> str:
    return f" ({', '.join(names)})" if names else ""


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}." if text and text[-1] not in ".?!)" else text[:1].upper() + text[1:]
