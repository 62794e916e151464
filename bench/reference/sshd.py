"""A real sshd, on this or on another machine."""

import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from bench.figure import Skipped

SSH_PORT = 29891
PROGRAM = "/usr/sbin/sshd"


class Sshd:
    """Runs inside the block. ``key``: the private key that it accepts. ``prefix``: what runs a program on the machine."""

    def __init__(self, folder: Path, prefix: Sequence[str] = ()) -> None:
        if not Path(PROGRAM).exists():
            raise Skipped("there is no sshd; on Debian: apt install openssh-server")
        self.key = folder / "id"
        host_key = folder / "host_key"
        for path in (self.key, host_key):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)], check=True)
        options = {
            "Port": str(SSH_PORT),
            "HostKey": str(host_key),
            "AuthorizedKeysFile": f"{self.key}.pub",
            "StrictModes": "no",
            "PasswordAuthentication": "no",
            "UsePAM": "no",
            "PidFile": "none",
        }
        (folder / "sshd_config").write_text("".join(f"{name} {value}\n" for name, value in options.items()))
        Path("/run/sshd").mkdir(exist_ok=True)
        self._argv = [*prefix, PROGRAM, "-D", "-f", str(folder / "sshd_config")]

    @property
    def client(self) -> list[str]:
        """Returns the command that runs a program by ssh on this machine."""
        options = ("StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "LogLevel=ERROR")
        named = [word for option in options for word in ("-o", option)]
        return ["ssh", "-p", str(SSH_PORT), "-i", str(self.key), *named, "127.0.0.1"]

    def __enter__(self) -> "Sshd":
        self._process = subprocess.Popen(self._argv, stderr=subprocess.DEVNULL)
        time.sleep(0.5)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.terminate()
        self._process.wait(10)
