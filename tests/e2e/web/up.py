"""A cluster of `det up`, with the link that it prints."""

import contextlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.support.live_cluster import LiveCluster, environment, log_in
from tests.support.new_database import put_database


class DetUp(LiveCluster):
    """A cluster under one supervisor, as a person starts it."""

    link = ""

    def start(self, slots: int) -> None:
        argv = [sys.executable, "-m", "determined_cli", "up", "--port", "0", "--data", str(self.data)]
        self.process = subprocess.Popen(
            [*argv, "--slots", str(slots)],
            env={**os.environ, **environment(self.folder)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        ready = self.process.stdout.readline()
        assert ready.startswith("ready: "), ready + self.process.stderr.read()
        self.url = ready.split()[1]
        link = next(
            re.match(r"open: (\S+) \(valid once, for 10 minutes\)\n", line)
            for line in self.process.stderr
            if "open:" in line
        )
        assert link is not None
        self.link = link[1]
        self.session = log_in(self.url, self.data)

    def stop(self) -> None:
        self.session.close()
        argv = [sys.executable, "-m", "determined_cli", "down", "--now", "--data", str(self.data)]
        subprocess.run(argv, env=environment(self.folder), capture_output=True, timeout=180)
        self.process.send_signal(signal.SIGKILL)
        self.process.communicate()


@contextlib.contextmanager
def det_up(folder: Path, *, slots: int) -> Iterator[DetUp]:
    cluster = DetUp(folder)
    put_database(cluster.data)
    cluster.start(slots)
    try:
        yield cluster
    finally:
        cluster.stop()
