"""Our files below ``~/.ssh``: a key, the keys of tasks, and a configuration that the user's own includes."""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from determined.errors import BadRequest
from determined_launch.atomic_file import write_atomic

FOLDER = "detent"
_MARK = "# by `det ssh-config`; removed by `det ssh-config --remove`"
MAX_KNOWN_HOSTS = 1000
MAX_CONFIG_BYTES = 4 << 20


class SshFiles:
    """The files below one ``.ssh`` folder. They are readable by their owner only."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self._users = home / "config"
        self._folder = home / FOLDER
        self.config = self._folder / "config"
        self.key = self._folder / "id_ed25519"
        self.known_hosts = self._folder / "known_hosts"
        self._lock = self._folder / "lock"
        self._include = f'Include "{self.config}"'

    @property
    def public_key(self) -> str:
        """Returns the public key. Raises BadRequest if there is none."""
        try:
            return self.key.with_suffix(".pub").read_text(encoding="ascii").strip()
        except (OSError, ValueError):
            raise BadRequest("there is no key for ssh on this machine; run `det ssh-config`") from None

    def make_key(self) -> None:
        """Makes the key unless it exists."""
        self._make_folder()
        with self._locked():
            if self.key.exists() and self.key.with_suffix(".pub").exists():
                return
            key = Ed25519PrivateKey.generate()
            private = key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
            public = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
            write_atomic(self.key, private.decode())
            write_atomic(self.key.with_suffix(".pub"), f"{public.decode()} det ssh-config\n")

    def write(self, config: str) -> None:
        """Writes our configuration, and includes it at the top of the user's, which is not changed otherwise."""
        self._make_folder()
        with self._locked():
            write_atomic(self.config, config)
            text = self._users_config()
            if self._include in text.splitlines():
                return
            # At the top, because a line below a Host belongs to that host.
            self._write_users_config(f"{_MARK}\n{self._include}\n\n{text}" if text else f"{_MARK}\n{self._include}\n")

    def remove(self) -> None:
        """Removes our files and our lines in the user's configuration. Idempotent."""
        text = self._users_config()
        lines = text.splitlines(keepends=True)
        kept = [line for line in lines if line.strip() not in (self._include, _MARK)]
        if len(kept) != len(lines):
            rest = "".join(kept)
            was_first = lines[0].strip() in (self._include, _MARK)
            self._write_users_config(rest.removeprefix("\n") if was_first else rest)
        for path in (self.config, self.key, self.key.with_suffix(".pub"), self.known_hosts, self._lock):
            path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # files that others put there stay
            self._folder.rmdir()

    def learn(self, host: str, public_key: str) -> None:
        """Notes the key of a host, in place of an earlier one."""
        name = host.lower()
        with self._locked():
            try:
                lines = self.known_hosts.read_text(encoding="ascii").splitlines()
            except (OSError, ValueError):
                lines = []
            names = f"{name},[{name}]:*"  # the second for another port, which ssh may be told
            kept = [line for line in lines if line.split(" ", 1)[0] != names][-MAX_KNOWN_HOSTS + 1 :]
            line = f"{names} {public_key}"
            if lines[-1:] != [line]:
                write_atomic(self.known_hosts, "".join(f"{each}\n" for each in (*kept, line)))

    def _make_folder(self) -> None:
        for folder in (self.home, self._folder):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def _users_config(self) -> str:
        try:
            if self._users.stat().st_size > MAX_CONFIG_BYTES:
                raise BadRequest(f"{self._users} is no configuration of ssh: it is larger than 4 MiB")
            return self._users.read_bytes().decode()
        except FileNotFoundError:
            return ""
        except UnicodeDecodeError:
            raise BadRequest(
                f"{self._users} is not in UTF-8; add or remove its line `{self._include}` yourself"
            ) from None

    def _write_users_config(self, text: str) -> None:
        # A link to a file elsewhere stays a link.
        path = self._users.resolve()
        mode = path.stat().st_mode & 0o777 if path.exists() else 0o600
        write_atomic(path, text, mode=mode)

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        descriptor = os.open(self._lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)
