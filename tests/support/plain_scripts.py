"""Plain scripts on a live cluster: a context of given files and a configuration with ``pause``."""

from pathlib import Path
from typing import Any

import yaml
from tests.support.live_cluster import LiveCluster
from tests.support.live_trials import Experiment
from tests.support.waiting import wait_until

from determined.client import submissions
from determined.context import pack

STEPS = 40
LOOP = f"""
step=$(cat "$SAVES/state" 2>/dev/null || echo 0)
trap 'echo $step > "$SAVES/state"; exit 7' USR1
while [ "$step" -lt {STEPS} ]; do
    step=$((step + 1))
    echo $step >> "$SAVES/steps"
    sleep 0.1
done
"""
"""A loop for bash that continues where it was, and ends with code 7 after it has saved."""


class PlainScript(Experiment):
    """An experiment whose script saves into a folder of its own, which it finds as ``$SAVES``."""

    def __init__(self, cluster: LiveCluster, experiment_id: int, saves: Path) -> None:
        super().__init__(cluster, experiment_id)
        self.saves = saves

    def lines(self, name: str) -> list[str]:
        """Returns the lines of a file of the script's folder; none while it does not exist."""
        path = self.saves / name
        return path.read_text().splitlines() if path.exists() else []

    @property
    def steps(self) -> list[int]:
        """Returns the steps that ``LOOP`` has begun, in order."""
        return [int(line) for line in self.lines("steps")]

    def has_lines(self, name: str, count: int, *, within: float = 60.0) -> None:
        wait_until(lambda: len(self.lines(name)) >= count, within=within, what=f"{count} lines of {name}")


def create(cluster: LiveCluster, folder: Path, files: dict[str, str], entrypoint: str, **config: Any) -> PlainScript:
    """Creates an experiment from ``files``, which are named relative to its context."""
    context, saves = folder / "context", folder / "saves"
    context.mkdir(parents=True)
    saves.mkdir()
    for name, text in files.items():
        (context / name).write_text(text)
    body = {
        "name": "plain",
        "entrypoint": entrypoint,
        "searcher": {"name": "single", "metric": "loss"},
        "max_restarts": 0,
        "pause": {"signal": "SIGUSR1", "grace": 30},
        "environment": {"environment_variables": [f"SAVES={saves}"]},
        **config,
    }
    answer = submissions.create(
        cluster.session, {"config": yaml.safe_dump(body), "configName": "plain.yaml", "activate": True}, pack(context)
    )
    return PlainScript(cluster, int(answer["experiment"]["id"]), saves)
