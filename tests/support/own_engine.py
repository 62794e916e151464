"""A container engine of a test's own, without live-restore: its containers end with it. Needs root."""

import contextlib
import json
import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.support.container_engine import BASE_IMAGE, need_engine
from tests.support.engine_leftovers import end_leftovers
from tests.support.live_cluster import Program
from tests.support.waiting import wait_until

from determined_launch import process_table


class OwnEngine:
    """A ``dockerd`` with its own data, socket, runtime folder and bridge.

    Without a bridge (``--bridge none``) it would delete the bridge of the machine's other engine.
    """

    def __init__(self, folder: Path, prefix: Sequence[str] = ()) -> None:
        """``prefix``: words before its command, such as those for a network namespace."""
        self.folder = folder
        self._prefix = prefix
        self.url = f"unix://{folder}/engine.sock"
        self._bridge = f"own{os.getpid()}"
        self._program: Program | None = None

    def add_bridge(self) -> None:
        self._ip("link", "add", self._bridge, "type", "bridge")
        self._ip("address", "add", f"198.18.{os.getpid() % 256}.1/24", "dev", self._bridge)
        self._ip("link", "set", self._bridge, "up")

    def remove_bridge(self) -> None:
        self._ip("link", "delete", self._bridge)

    def start(self) -> None:
        # A killed engine leaves these files, and dockerd takes a dead containerd for a running one until it is reaped.
        for name in ("engine.pid", "exec/containerd/containerd.pid"):
            (self.folder / name).unlink(missing_ok=True)
        argv = [*self._prefix, "dockerd", "--host", self.url, "--data-root", f"{self.folder}/data", "--pidfile"]
        argv += [f"{self.folder}/engine.pid", "--exec-root", f"{self.folder}/exec", "--storage-driver", "overlay2"]
        argv += ["--bridge", self._bridge, "--iptables=false", "--ip-forward=false"]
        argv += ["--config-file", str(self._empty_config())]
        self._program = Program(argv, self.folder / "engine.log", dict(os.environ))
        wait_until(self._answers, within=30, what="the engine answers")

    def end(self, number: int = signal.SIGTERM) -> None:
        """Ends the engine and waits for its containerd, which the next engine would take for its own."""
        if self._program is not None:
            self._program.end(number, within=60)
        with contextlib.suppress(FileNotFoundError):
            pid = int((self.folder / "exec" / "containerd" / "containerd.pid").read_text())
            wait_until(lambda: not _lives(pid), within=20, what="containerd has ended")

    def docker(self, *arguments: str) -> str:
        argv = ["docker", "--host", self.url, *arguments]
        return subprocess.run(argv, check=True, capture_output=True, text=True).stdout

    @property
    def containers(self) -> list[str]:
        return self.docker("ps", "--all", "--format", "{{.Names}}").split()

    def load(self, image: str) -> None:
        """Copies an image from the shared engine."""
        with subprocess.Popen(["docker", "save", image], stdout=subprocess.PIPE) as saved:
            subprocess.run(["docker", "--host", self.url, "load"], stdin=saved.stdout, check=True, capture_output=True)

    def _answers(self) -> bool:
        assert self._program is not None
        assert self._program.is_running, (self.folder / "engine.log").read_text()[-2000:]
        argv = ["docker", "--host", self.url, "info"]
        return subprocess.run(argv, check=False, capture_output=True).returncode == 0

    def _ip(self, *arguments: str) -> None:
        subprocess.run([*self._prefix, "ip", *arguments], check=True, capture_output=True)

    def _empty_config(self) -> Path:
        """Writes an empty configuration, so that the settings of the machine's engine, such as live-restore, do not
        apply."""
        path = self.folder / "daemon.json"
        path.write_text(json.dumps({}))
        return path


def _lives(pid: int) -> bool:
    process = process_table.find(pid)
    return process is not None and process.is_alive


@contextlib.contextmanager
def own_engine(
    folder: Path, images: Sequence[str] = (BASE_IMAGE,), *, prefix: Sequence[str] = ()
) -> Iterator[OwnEngine]:
    """Yields a running engine that has the images. ``prefix``: see :class:`OwnEngine`."""
    need_engine()
    folder.mkdir(parents=True)
    engine = OwnEngine(folder, prefix)
    try:
        engine.add_bridge()
        engine.start()
        for image in images:
            engine.load(image)
        yield engine
    finally:
        with contextlib.suppress(subprocess.CalledProcessError):
            if left := engine.containers:
                engine.docker("rm", "--force", *left)
        engine.end()
        end_leftovers(folder)
        engine.remove_bridge()
