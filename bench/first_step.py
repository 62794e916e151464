"""From ``det e create`` to the line after the first step, against the same script run by hand; ``det run`` of a program
that does nothing, against ``det e create`` of the same."""

import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from bench.figure import Figure, paired
from bench.processes import det, seconds, seconds_to
from bench.servers import ROOT, cluster
from bench.submitting import context_of

LINE = "first step done"
CONFIG = """
name: first-step
entrypoint: python3 plain.py
hyperparameters: {}
searcher: {name: single, metric: loss}
resources: {slots_per_trial: 1}
"""
NOTHING = CONFIG.replace("python3 plain.py", "['true']").replace("first-step", "'true'") + "max_restarts: 0\n"


def figures(rounds: int = 9) -> list[Figure]:
    with tempfile.TemporaryDirectory() as name, cluster(Path(name) / "data") as running:
        folder = Path(name)
        context = context_of(folder / "context", [ROOT / "bench" / "trials" / "plain.py"])
        (folder / "config.yaml").write_text(CONFIG, encoding="utf-8")
        # The supervisor wrote its login there.
        environment = {**os.environ, "XDG_CONFIG_HOME": str(folder / "config"), "DET_MASTER": running.url}
        ours = [det(), "e", "create", str(folder / "config.yaml"), str(context), "-f"]
        bare = [sys.executable, "plain.py"]

        def followed() -> float:
            return seconds_to(LINE, ours, cwd=folder, environment=environment)

        def by_hand() -> float:
            return seconds_to(LINE, bare, cwd=context)

        followed()
        by_hand()
        ratios, note = paired(followed, by_hand, rounds)
        first_step = Figure("det e create to first step / python train.py", 1.3, ratios, note=f"{note} s")
        return [first_step, _run(folder, context, environment, 2 * rounds)]


def _run(folder: Path, context: Path, environment: Mapping[str, str], rounds: int) -> Figure:
    """Returns the figure of ``det run -- true``, from its start to its end."""
    (folder / "nothing.yaml").write_text(NOTHING, encoding="utf-8")
    run = [det(), "run", "--", "true"]
    create = [det(), "e", "create", str(folder / "nothing.yaml"), str(context), "-f"]
    for warm in (run, create):
        seconds(warm, environment, context)
    ratios, note = paired(
        lambda: seconds(run, environment, context), lambda: seconds(create, environment, context), rounds
    )
    return Figure("det run -- true / det e create -f of the same", 1.1, ratios, note=f"{note} s")


if __name__ == "__main__":
    for figure in figures():
        print(figure.line())
