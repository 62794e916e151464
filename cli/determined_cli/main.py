"""The ``det`` command: finds noun and verb, imports only what they need, and reports errors as one line and a code."""

from __future__ import annotations

import os
import sys

from determined_cli import __version__, command_table
from determined_cli.terminal.messages import INTERRUPTED, say

TYPE_CHECKING = False  # importing typing, or collections.abc, would cost a third of what `det --version` may take
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Sequence

    from determined_cli.command import Command

USAGE = 2
DEFAULT_COLUMNS = 80


def main(argv: Sequence[str] | None = None, *, may_ask: bool = True) -> int:
    """Runs one command and returns its exit code. With ``may_ask`` it may ask on the terminal whether a certificate is
    trusted, and then runs the command again."""
    words = list(sys.argv[1:] if argv is None else argv)
    if words in (["--version"], ["-v"]):
        sys.stdout.write(f"det {__version__}\n")
        return 0
    try:
        code = _dispatch(words)
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader (head, less) has closed the pipe: prevents another error message at interpreter exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except SystemExit as error:
        return error.code if isinstance(error.code, int) else 1
    except Exception as error:
        if os.environ.get("DET_DEBUG"):
            raise
        if may_ask and hasattr(error, "master") and _confirmed(error):
            return main(words, may_ask=False)
        return _explain(error)


class Globals:
    """Options before the noun."""

    __slots__ = ("master", "no_color", "user")

    def __init__(self) -> None:
        self.master: str | None = None
        self.user: str | None = None
        self.no_color = False


def _dispatch(words: list[str]) -> int:
    options = Globals()
    rest = _globals(words, options)
    if rest is None:
        return USAGE
    if rest[:1] == ["help"] and len(rest) > 1:
        rest = [*rest[1:], "--help"]
    if not rest or rest[0] in ("-h", "--help", "help"):
        _overview()
        return 0 if rest else USAGE
    if rest[0] == command_table.COMPLETE:
        from determined_cli.completion import ids as completion_ids

        return completion_ids.run(rest[1:], options)
    noun = command_table.find(rest[0])
    if noun is None and rest[0] in command_table.NOT_OFFERED:
        return _not_offered(rest[0], command_table.NOT_OFFERED[rest[0]])
    if noun is None:
        return _unknown("command", rest[0], list(command_table.NOUNS))
    return _run(f"det {noun}", _verbs(noun), rest[1:], options)


def _globals(words: list[str], options: Globals) -> list[str] | None:
    index = 0
    while index < len(words):
        name, has_value, value = words[index].partition("=")
        field = {"-m": "master", "--master": "master", "-u": "user", "--user": "user"}.get(name)
        if field is not None:
            if not has_value:
                index += 1
                if index >= len(words):
                    say(f"det: {name} needs a value")
                    return None
                value = words[index]
            setattr(options, field, value)
        elif name == "--no-color":
            options.no_color = True
        elif name in ("-v", "--version"):
            return ["version"]
        elif name.startswith("-") and name not in ("-h", "--help"):
            say(f"det: unknown option {name}; see `det --help`")
            return None
        else:
            return words[index:]
        index += 1
    return words[index:]


def _verbs(noun: str) -> Sequence[Command]:
    from importlib import import_module

    module = import_module(command_table.NOUNS[noun][0])
    verbs: Sequence[Command] = module.VERBS
    single = [verb for verb in verbs if verb.name == noun]
    return single if single and noun in module.NOUNS_WITHOUT_VERBS else verbs


def _run(prog: str, verbs: Sequence[Command], words: list[str], options: Globals) -> int:
    from determined_cli import command as table

    noun = prog.rpartition(" ")[2]
    if len(verbs) == 1 and verbs[0].name == noun:
        verb = verbs[0]
    else:
        if not words or words[0] in ("-h", "--help", "help"):
            _group_help(prog, verbs)
            return 0 if words else USAGE
        command = table.find(verbs, words[0])
        missing = command_table.NOT_OFFERED_VERBS.get(prog.removeprefix("det "), {})
        if command is None and words[0] in missing:
            return _not_offered(f"{prog.removeprefix('det ')} {words[0]}", missing[words[0]])
        if command is None:
            names = [name for verb in verbs for name in verb.names]
            return _unknown(f"verb of `{prog}`", words[0], [verb.name for verb in verbs], names)
        words = [*command.alias_words.get(words[0], ()), *words[1:]]
        verb, prog = command, f"{prog} {command.name}"
    if verb.verbs:
        return _run(prog, verb.verbs, words, options)
    return _call(prog, verb, words, options)


def _call(prog: str, verb: Command, words: list[str], options: Globals) -> int:
    from argparse import RawDescriptionHelpFormatter
    from importlib import import_module

    from determined_cli.argument_parser import ArgumentParser

    examples = "".join(f"  {line}\n" for line in verb.examples)
    parser = ArgumentParser(
        prog,
        description=verb.help,
        epilog=f"examples:\n{examples}" if examples else None,
        formatter_class=lambda prog: RawDescriptionHelpFormatter(prog, width=_width()),
        allow_abbrev=False,
    )
    for add in verb.arguments:
        add(parser)
    if verb.takes_program:
        args = _with_program(parser, words)
    else:
        args = (parser.parse_intermixed_args if verb.is_intermixed else parser.parse_args)(words)
    args.options = options
    module, _, function = verb.run.partition(":")
    try:
        code = getattr(import_module(module), function)(args)
        return 0 if code is None else int(code)
    finally:
        if connection := sys.modules.get("determined_cli.connection"):
            connection.close()


def _with_program(parser: ArgumentParser, words: list[str]) -> Namespace:
    """Parses the words before ``--``; those behind it are the program."""
    usage = parser.format_usage().removeprefix("usage: ").rstrip()
    parser.usage = f"{usage}\n{' ' * len('usage: ' + parser.prog)} -- PROGRAM [ARGUMENT ...]"
    place = words.index("--") if "--" in words else len(words)
    args, surplus = parser.parse_known_args(words[:place])
    if surplus and not surplus[0].startswith("-"):
        parser.error(f"put the program behind --, as in: -- {' '.join(surplus)}")
    if surplus:
        parser.error(f"unrecognized arguments: {' '.join(surplus)}")
    args.program = words[place + 1 :]
    return args


def _width() -> int:
    """Returns the width for argparse, which would otherwise import shutil to compute it."""
    try:
        columns = int(os.environ.get("COLUMNS") or os.get_terminal_size().columns)
    except (OSError, ValueError):
        columns = 0
    return (columns or DEFAULT_COLUMNS) - 2


def _overview() -> None:
    lines = ["usage: det [-m MASTER] [-u USER] NOUN VERB [...]", ""]
    for noun, (_, help, short) in command_table.NOUNS.items():
        lines.append(f"  {', '.join((noun, *short)):<18}{help}")
    lines += [
        "",
        "  -m, --master URL  URL of the master (default: $DET_MASTER, else the master",
        "                    of `det up`, else http://localhost:8080)",
        "  -u, --user USER   user to act as (default: the user who logged in last)",
        "  --version         print the version of this client",
        "",
        "`det NOUN --help` lists the verbs, `det NOUN VERB --help` the options of one.",
        "Which command starts what, and where: docs/reference/which-command.md, which",
        "a master serves at /docs/reference/which-command.html.",
        "",
        "examples:",
        "  det up",
        "  det experiment create config.yaml context/ -f",
        "  det e list",
    ]
    print("\n".join(lines))


def _group_help(prog: str, verbs: Sequence[Command]) -> None:
    print(f"usage: {prog} VERB [...]\n")
    names = [", ".join(verb.names) for verb in verbs]
    width = max(map(len, names)) + 2
    for name, verb in zip(names, verbs, strict=True):
        print(f"  {name:<{width}}{verb.help}")


def _not_offered(words: str, instead: str) -> int:
    say(f'det: "{words}" is not supported yet; {instead}')
    say("What is different from Determined: docs/how-to/coming-from-determined.md")
    return USAGE


def _unknown(what: str, word: str, known: list[str], names: list[str] | None = None) -> int:
    """Names the nearest of all ``names``, or lists those that are ``known``."""
    from difflib import get_close_matches

    near = get_close_matches(word, names or known, n=1)
    hint = f'did you mean "{near[0]}"?' if near else f"valid: {', '.join(known)}"
    say(f'det: unknown {what} "{word}"; {hint}')
    return USAGE


def _explain(error: Exception) -> int:
    from determined.errors import DeterminedError

    if isinstance(error, DeterminedError):
        say(f"det: {error.message}{_unreachable_hint(error)}")
        return error.exit_code
    if isinstance(error, OSError) and error.filename:
        say(f"det: {error.filename}: {error.strerror}")
        return 1
    say(f"det: internal error: {type(error).__name__}: {error} (set DET_DEBUG=1 for a traceback)")
    return 1


def _confirmed(error: Exception) -> bool:
    from determined.errors import UntrustedCertificate
    from determined_cli.terminal import certificate_prompt

    return isinstance(error, UntrustedCertificate) and error.master != "" and certificate_prompt.confirm(error)


def _unreachable_hint(error: Exception) -> str:
    """Returns how to start or choose a master if no program listens at the address."""
    if not getattr(error, "is_refused", False):
        return ""
    from determined_cli.up import data_folder

    supervisor = data_folder.holder(data_folder.default())
    if supervisor is not None:
        return f"; `det up` runs (pid {supervisor}): its master is starting again, try again in a moment"
    return "; `det up` starts a master on this machine, `det -m URL` or DET_MASTER selects another one"
