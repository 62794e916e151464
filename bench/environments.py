"""A second start with the same requirements, against a start without any: from the submission to the end."""

import json
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tests.support.package_index import package_index

from bench.figure import Figure
from bench.servers import cluster
from bench.submitting import create, until_completed
from determined.client.session import Session

CONFIG = """
name: start
entrypoint: python3 -c pass
searcher: {name: single, metric: loss}
max_restarts: 0
"""


def figures(rounds: int = 7) -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as name, cluster(Path(name) / "data") as running:
        folder, session = Path(name), running.session()
        with package_index(folder / "wheels") as index:
            index.add("parrot", "1.0")
            context = folder / "context"
            context.mkdir()
            (context / "requirements.txt").write_text("parrot\n")
            environment = {"venv": {"requirements": "requirements.txt"}, "environment_variables": index.variables}
            listed = f"{CONFIG}environment: {json.dumps(environment)}\n"
            first = _seconds(session, listed, context)
            with_list, without = [], []
            for number in range(rounds):
                for config, measured in ((listed, with_list), (CONFIG, without))[:: 1 if number % 2 else -1]:
                    measured.append(_seconds(session, config, context))
    more = [seconds_with - seconds_without for seconds_with, seconds_without in zip(with_list, without, strict=True)]
    note = f"{sorted(with_list)[rounds // 2]:.2f} against {sorted(without)[rounds // 2]:.2f} s; the first {first:.1f} s"
    yield Figure("second start with the same requirements.txt, more", 0.3, more, unit="s", note=note)


def _seconds(session: Session, config: str, context: Path) -> float:
    start = time.perf_counter()
    experiment, _trial = create(session, config, context)
    until_completed(session, experiment)
    return time.perf_counter() - start


if __name__ == "__main__":
    for figure in figures(1):
        print(figure.line())
