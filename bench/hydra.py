"""Cost of ``det hydra check`` over Hydra's own composition, and of ``hydra/launcher=det`` over a search of the same
jobs."""

import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench.figure import Figure, paired
from bench.processes import det, seconds
from bench.servers import ROOT, cluster

GROUPS, VALUES, JOBS, SLOTS = 10, 20, 20, 2
LAUNCHER = ROOT / "workflows" / "hydra-launcher"
APP = """
import hydra


@hydra.main(config_path="configs", config_name="config", version_base="1.3")
def main(cfg):
    return None


main()
"""


def figures(rounds: int = 7) -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "project"
        _write_project(folder)
        before = Path.cwd()
        os.chdir(folder)
        try:
            yield _check(rounds)
            (folder / "configs" / "config.yaml").write_text("job: 0\n")  # jobs that do nothing
            yield _launcher(Path(name), rounds)
        finally:
            os.chdir(before)


def _write_project(folder: Path) -> None:
    for number in range(GROUPS):
        group = folder / "configs" / f"group{number}"
        group.mkdir(parents=True)
        (group / "default.yaml").write_text("".join(f"value{value}: {value}\n" for value in range(VALUES)))
    defaults = "".join(f"  - group{number}: default\n" for number in range(GROUPS))
    (folder / "configs" / "config.yaml").write_text(f"defaults:\n{defaults}  - _self_\njob: 0\n")
    (folder / "app.py").write_text(APP)


def _check(rounds: int) -> Figure:
    environment = {**os.environ, "VIRTUAL_ENV": sys.prefix}
    ours = [det(), "hydra", "check", "app.py"]
    theirs = [sys.executable, "app.py", "--cfg", "job", "--resolve"]
    for warm in (ours, theirs):
        seconds(warm, environment)
    ratios, note = paired(
        lambda: seconds(ours, environment) * 1000, lambda: seconds(theirs, environment) * 1000, rounds
    )
    return Figure("det hydra check / the application's own composition", 1.5, ratios, note=f"{note} ms")


def _launcher(folder: Path, rounds: int) -> Figure:
    """The reference runs the same jobs, each of which starts Hydra in its trial as well."""
    config = {
        "name": "search",
        "entrypoint": "python3 app.py",
        "hyperparameters": {},
        "searcher": {
            "name": "list",
            "metric": "none",
            "trials": [{"job": number} for number in range(JOBS)],
            "max_concurrent_trials": 256,
        },
        "environment": {"image": f"venv:{sys.prefix}"},
        "max_restarts": 0,
    }
    file = folder / "search.yaml"
    file.write_text(json.dumps(config))
    with cluster(folder / "data", slots=SLOTS) as running:
        environment = {
            **os.environ,
            "DET_MASTER": running.url,
            "DET_USER_TOKEN": running.token,
            "XDG_CONFIG_HOME": str(folder),
            "PYTHONPATH": str(LAUNCHER),
        }
        ours = [sys.executable, "app.py", "--multirun", "hydra/launcher=det", f"job=range({JOBS})"]
        theirs = [det(), "experiment", "create", str(file), ".", "-f"]
        for warm in (ours, theirs):
            seconds(warm, environment)
        ratios, note = paired(lambda: seconds(ours, environment), lambda: seconds(theirs, environment), rounds)
    return Figure(f"hydra/launcher=det of {JOBS} jobs / a search of the same", 1.2, ratios, note=f"{note} s")


if __name__ == "__main__":
    for figure in figures():
        print(figure.line())
