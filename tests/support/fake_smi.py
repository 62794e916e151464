"""A scripted ``rocm-smi``: a program in a folder for ``PATH`` that prints the text of a test."""

import json
import stat
from dataclasses import dataclass, field
from pathlib import Path

_PROGRAM = """#!/bin/sh
cat "{folder}/answer"
"""


@dataclass
class FakeSmi:
    """A program of this name in ``folder``, which is put first on ``PATH``."""

    folder: Path
    name: str = "rocm-smi"
    _data: Path = field(init=False)

    def __post_init__(self) -> None:
        self._data = self.folder / f"{self.name}.data"
        self._data.mkdir(parents=True)
        program = self.folder / self.name
        program.write_text(_PROGRAM.format(folder=self._data))
        program.chmod(program.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
        self.say("")

    def say(self, text: str) -> None:
        """Makes the program print this text."""
        (self._data / "answer").write_text(text)

    def show_cards(self, **cards: dict[str, str]) -> None:
        """Makes the program describe these AMD cards."""
        self.say(json.dumps(cards | {"system": {"Driver version": "6.3.6"}}))
