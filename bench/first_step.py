"""From ``det e create`` to the line after the first step, against the same script run by hand."""

import os
import sys
import tempfile
from pathlib import Path

from bench.figure import Figure, paired
from bench.processes import det, seconds_to
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
    return [Figure("det e create to first step / python train.py", 1.3, ratios, note=f"{note} s")]


if __name__ == "__main__":
    for figure in figures():
        print(figure.line())
