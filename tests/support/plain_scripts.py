"""Plain scripts on a live cluster: a context of given files and a configuration with ``pause``."""

from pathlib import Path
from typing import Any

import yaml
from tests.support.live_cluster import LiveCluster
from tests.support.live_trials import Experiment
from tests.support.waiting import wait_until

from determined.client import submissions
from determined.context import pack


class PlainScript(Experiment):
    """An experiment whose script saves into a folder of its own, which it finds as ``$SAVES``."""

    def __init__(self, cluster: LiveCluster, experiment_id: int, saves: Path) -> None:
        super().__init__(cluster, experiment_id)
        self.saves = saves

    def lines(self, name: str) -> list[str]:
        """Returns the lines of a file of the script's folder; none while it does not exist."""
        path = self.saves / name
        return path.read_text().splitlines() if path.exists() else []

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
