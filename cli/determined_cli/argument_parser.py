"""The parser of a command's options: an unknown one is answered with the nearest that exists."""

from __future__ import annotations

import argparse

TYPE_CHECKING = False  # see main.py
if TYPE_CHECKING:
    from typing import NoReturn

_UNKNOWN = "unrecognized arguments: "


class ArgumentParser(argparse.ArgumentParser):
    """``argparse``'s parser with a hint for misspelt options."""

    def error(self, message: str) -> NoReturn:
        """Prints usage and message and ends the program, as ``argparse`` does."""
        from difflib import get_close_matches

        words = message.removeprefix(_UNKNOWN).split() if message.startswith(_UNKNOWN) else []
        unknown = [word.partition("=")[0] for word in words if word.startswith("-")]
        # Other spellings of options have underscores.
        known = [option for option in self._option_string_actions if option.startswith("--") and "_" not in option]
        near = get_close_matches(unknown[0], known, n=1) if unknown else []
        super().error(f"{message}; did you mean {near[0]}?" if near else message)
