"""Definition of commands: name, help line, arguments, and the function that runs."""

from __future__ import annotations

TYPE_CHECKING = False  # see main.py
if TYPE_CHECKING:
    from argparse import ArgumentParser
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import TypedDict, Unpack

    Arguments = Callable[[ArgumentParser], None]

    class ArgumentOptions(TypedDict, total=False):
        """The keywords of ``ArgumentParser.add_argument`` that commands use."""

        action: str
        choices: Iterable[str]
        const: object
        default: object
        dest: str
        help: str
        metavar: str | tuple[str, ...]
        nargs: int | str
        required: bool
        type: Callable[[str], object]


class Command:
    """One verb of a noun. ``run`` is ``module:function``, which is imported only if the verb is used.

    ``is_intermixed`` lets flags stand between the words of a list, which other verbs do not need. ``alias_words`` are
    the words that an alias stands for beside the verb: ``attach`` may be ``logs --follow``. With ``takes_program``, the
    words behind ``--`` are ``program``.
    """

    __slots__ = (
        "alias_words",
        "aliases",
        "arguments",
        "examples",
        "help",
        "is_intermixed",
        "name",
        "run",
        "takes_program",
        "verbs",
    )

    def __init__(
        self,
        name: str,
        help: str,
        run: str = "",
        arguments: Sequence[Arguments] = (),
        aliases: Sequence[str] = (),
        examples: Sequence[str] = (),
        verbs: Sequence[Command] = (),
        *,
        is_intermixed: bool = False,
        alias_words: Mapping[str, Sequence[str]] | None = None,
        takes_program: bool = False,
    ) -> None:
        self.name, self.help, self.run = name, help, run
        self.arguments, self.aliases, self.examples, self.verbs = arguments, aliases, examples, verbs
        self.is_intermixed = is_intermixed
        self.alias_words = alias_words or {}
        self.takes_program = takes_program

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name, *self.aliases)


def find(verbs: Sequence[Command], word: str) -> Command | None:
    """Returns the verb with this name or alias, or None."""
    return next((verb for verb in verbs if word in verb.names), None)


def argument(*names: str, **options: Unpack[ArgumentOptions]) -> Arguments:
    """Returns a function that adds an argument to a parser."""

    def add(parser: ArgumentParser) -> None:
        parser.add_argument(*names, **options)

    return add


def ranking(parser: ArgumentParser) -> None:
    """Adds the options that say by which metric checkpoints are the best."""
    parser.add_argument("--metric", metavar="NAME", help="this validation metric instead of the searcher's")
    parser.add_argument(
        "--goal", choices=("minimize", "maximize"), help="which of its values are better (default: as configured)"
    )


def listing(parser: ArgumentParser) -> None:
    """Adds the options for output formats, which every list has."""
    group = parser.add_mutually_exclusive_group()
    for kind, help in (
        ("table", "print a table (default)"),
        ("json", "print JSON"),
        ("yaml", "print YAML"),
        ("csv", "print comma-separated values"),
    ):
        group.add_argument(f"--{kind}", dest="format", action="store_const", const=kind, help=help)
    parser.set_defaults(format="table")


def selecting(parser: ArgumentParser) -> None:
    """Adds the options that select columns, order and rows of a list."""
    parser.add_argument("--columns", metavar="A,B", help="print these columns only, in this order")
    parser.add_argument("--sort", metavar="COLUMN", help="sort by this column; COLUMN:desc sorts in descending order")
    parser.add_argument(
        "--filter",
        action="append",
        default=[],
        metavar="CONDITION",
        help="only rows for which this is true: COLUMN=VALUE, or one of != < <= > >= ~ (contains) (repeatable)",
    )


MAX_SECONDS = 1e9


def seconds(text: str) -> float:
    """Parses a duration for which a program can wait. Raises ValueError.

    >>> seconds("0.5")
    0.5
    """
    number = float(text)
    if not 0 <= number <= MAX_SECONDS:  # no NaN either
        raise ValueError(text)
    return number


EXPERIMENT_ID = argument("experiment_id", type=int, metavar="EXPERIMENT_ID")
TRIAL_ID = argument("trial_id", type=int, metavar="TRIAL_ID")
YES = argument("-y", "--yes", action="store_true", help="do not ask for confirmation")
NO_CODE = argument(
    "--no-code", action="store_true", help="do not store commit and uncommitted changes of the folder's repository"
)
