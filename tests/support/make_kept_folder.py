"""Makes a data folder to archive: ``python -m tests.support.make_kept_folder NAME`` writes
``tests/e2e/data_folders/NAME``.

Run it on the commit before a large change, with the date as the name. It runs a real ``det up`` with three
experiments: 1 is completed, 2 is paused after three steps, and 3 has reported three steps when all processes are killed
at once, as by a power failure.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.support import kept_folders, live_processes
from tests.support.live_cluster import python
from tests.support.waiting import wait_until

STEPS = 6
HELD_AT = 3
SCRIPT = f"""\
import determined as det

STEPS, HELD_AT = {STEPS}, {HELD_AT}

info = det.get_cluster_info()
with det.core.init() as core:
    done = 0
    if info.latest_checkpoint:
        with core.checkpoint.restore_path(info.latest_checkpoint) as path:
            done = int((path / "step").read_text())
        print("going on from", done, flush=True)
    for step in range(done + 1, STEPS + 1):
        core.train.report_training_metrics(steps_completed=step, metrics={{"loss": 1 / step}})
        core.train.report_validation_metrics(steps_completed=step, metrics={{"error": 1 / step}})
        with core.checkpoint.store_path({{"steps_completed": step}}) as (path, _):
            (path / "step").write_text(str(step))
        print("step", step, flush=True)
        if info.trial.hparams["hold"] and step == HELD_AT and not done:
            while not core.preempt.should_preempt():
                pass
            raise SystemExit(0)
"""
CONFIG = """\
name: {name}
labels: [kept]
entrypoint: python3 train.py
searcher: {{name: single, metric: error, smaller_is_better: true}}
hyperparameters: {{hold: {hold}}}
max_restarts: 2
"""


class Maker:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.data = folder / "data"
        # No other variable of this machine may get into the archive.
        self.environment = {
            "PATH": os.pathsep.join([str(Path(sys.prefix) / "bin"), "/usr/local/bin", "/usr/bin", "/bin"]),
            "LANG": "C.UTF-8",
            "HOME": str(self.data),
            "XDG_CONFIG_HOME": str(folder / "config"),
        }
        argv = python("determined_cli", "up", "--port", "0", "--data", str(self.data), "--slots", "1", "--quiet-link")
        self.up = subprocess.Popen(argv, env=self.environment, stdout=subprocess.PIPE, text=True)
        assert self.up.stdout is not None
        assert self.up.stdout.readline().startswith("ready: ")

    def det(self, *arguments: str) -> str:
        argv = python("determined_cli", *arguments)
        return subprocess.run(
            argv, env=self.environment, capture_output=True, text=True, check=True, timeout=270
        ).stdout

    def create(self, name: str, hold: bool) -> None:
        context = self.folder / name
        context.mkdir()
        (context / "train.py").write_text(SCRIPT)
        (context / "config.yaml").write_text(CONFIG.format(name=name, hold=str(hold).lower()))
        self.det("experiment", "create", str(context / "config.yaml"), str(context))

    def state(self, number: int) -> str:
        return str(json.loads(self.det("experiment", "describe", str(number), "--json"))[0]["state"])

    def held(self, number: int) -> None:
        line = f"step {HELD_AT}"
        wait_until(lambda: line in self.det("experiment", "logs", str(number)), within=60, what=f"{number} is held")

    def power_failure(self) -> None:
        """Kills the supervisor with master and agent, then the tasks, before any of them can write."""
        below = live_processes.below({self.up.pid})
        for pid in (self.up.pid, *sorted(below)):
            os.kill(pid, signal.SIGKILL)
        live_processes.kill_below(self.folder)
        self.up.wait()


def main(name: str) -> int:
    with tempfile.TemporaryDirectory(prefix="kept-") as scratch:
        maker = Maker(Path(scratch))
        try:
            maker.create("ended", hold=False)
            maker.det("experiment", "wait", "1")
            maker.create("paused", hold=True)
            maker.held(2)
            maker.det("experiment", "pause", "2")
            wait_until(lambda: maker.state(2) == "PAUSED", what="2 is paused")
            maker.create("running", hold=True)
            maker.held(3)
        finally:
            maker.power_failure()
        kept_folders.pack(maker.data, kept_folders.KEPT / f"{name}.tar.zst")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
