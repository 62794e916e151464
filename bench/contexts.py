"""A context of 60 MB, sent for the first time and again: time and bytes of ``det`` against the official client.

Two thirds are text with the redundancy of source code, one third does not compress.
"""

import os
import random
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.support.live_proxy import proxy

from bench.cli import CONFIG, logged_in, official, without_ours
from bench.figure import Figure, paired
from bench.processes import det, seconds
from bench.servers import master

TEXT_FILES, TEXT_BYTES = 200, 200_000
OTHER_FILES, OTHER_BYTES = 20, 1_000_000
WORDS = 2000


@dataclass
class Client:
    """A command line client and the environment in which it is logged in."""

    program: str
    environment: dict[str, str]

    def submit(self, folder: Path) -> float:
        """Returns the seconds of ``experiment create`` with the context below ``folder``."""
        words = ["experiment", "create", str(folder / "config.yaml"), str(folder / "context"), "--paused"]
        return seconds([self.program, *words], self.environment)

    def submit_new(self, folder: Path) -> float:
        """Like :meth:`submit`, with a context that was never sent."""
        (folder / "context" / "new.txt").write_text(os.urandom(8).hex())
        return self.submit(folder)


def figures(rounds: int = 7) -> Iterator[Figure]:
    theirs = official()
    with tempfile.TemporaryDirectory() as name, master(Path(name) / "data") as running:
        folder = Path(name)
        _write(folder)
        environment = logged_in(running.url, running.data, folder, theirs)
        ours, reference = Client(det(), environment), Client(theirs, without_ours(environment))
        ours.submit(folder)
        reference.submit(folder)
        first, first_words = paired(lambda: ours.submit_new(folder), lambda: reference.submit_new(folder), rounds)
        again, again_words = paired(lambda: ours.submit(folder), lambda: reference.submit(folder), rounds)
        port = int(running.url.rpartition(":")[2])
        with proxy(port) as between:
            environment = logged_in(between.url, running.data, folder, theirs)
            ours, reference = Client(det(), environment), Client(theirs, without_ours(environment))

            def sent(submit: Callable[[Path], float]) -> int:
                before = between.received
                submit(folder)
                return between.received - before

            new, known, whole = sent(ours.submit_new), sent(ours.submit), sent(reference.submit_new)
    size = f"{new / 1e6:.1f} and {known / 1e6:.3f} MB against {whole / 1e6:.1f} MB"
    yield Figure("60 MB context, first submission / official det, time", 0.8, first, note=f"{first_words} s")
    yield Figure("60 MB context, first submission / official det, bytes", 0.6, [new / whole], note=size)
    yield Figure("60 MB context, repeated / official det, time", 0.1, again, note=f"{again_words} s")
    yield Figure("60 MB context, repeated / official det, bytes", 0.01, [known / whole], note=size)


def _write(folder: Path) -> None:
    (folder / "config.yaml").write_text(CONFIG)
    context = folder / "context"
    context.mkdir()
    draw = random.Random(1)
    words = ["".join(draw.choices("abcdefghijklmnopqrstuvwxyz_", k=draw.randrange(2, 12))) for _ in range(WORDS)]
    for number in range(TEXT_FILES):
        lines = (" ".join(draw.choices(words, k=10)) for _ in range(TEXT_BYTES // 70))
        (context / f"module_{number}.py").write_text("\n".join(lines))
    for number in range(OTHER_FILES):
        (context / f"image_{number}.bin").write_bytes(draw.randbytes(OTHER_BYTES))


if __name__ == "__main__":
    for figure in figures(1):
        print(figure.line())
