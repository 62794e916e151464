"""Errors of the grid runner. Each ends the program with one line and its exit code.

RunnerError
├── ParamsFileError      the file of parameters cannot be used
├── NotFoundError        there is no such output
└── ConflictError        another run uses the output, or none does
"""

PROGRAM = "det runner"
"""The name of the program in messages."""


class RunnerError(Exception):
    """The grid cannot be run."""

    exit_code = 1


class ParamsFileError(RunnerError):
    """The file of parameters cannot be used."""

    exit_code = 4


class NotFoundError(RunnerError):
    """There is no such output."""

    exit_code = 3


class ConflictError(RunnerError):
    """Another run uses the output, or none does."""

    exit_code = 7


def in_words_of(program: str, text: str) -> str:
    """Returns a message with the commands of a program that is not ``det``.

    >>> in_words_of("run", "`det runner run` continues it, `det runner init` writes an example")
    '`run` continues it, `run init` writes an example'
    """
    if program == PROGRAM:
        return text
    return text.replace(f"`{PROGRAM} run", f"`{program}").replace(f"`{PROGRAM}", f"`{program}")
