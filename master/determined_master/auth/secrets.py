"""Secrets in the data folder, and what is derived from them: task tokens and allocation keys."""

import hashlib
import hmac
import secrets
import string
from pathlib import Path

from determined.link.master_folder import AGENT_TOKEN, SECRET
from determined_launch.atomic_file import write_atomic

TASK_TOKEN_PREFIX = "dta1"
MIN_CHARACTERS = 32
"""Of a secret in a file; the master makes 64."""


class Secrets:
    """Secrets in the data folder, each in a file of mode 0600. ``secret`` signs task tokens, which need not be stored.
    ``join_token`` authenticates agents on every machine. ``operator_token`` authenticates the owner of the data
    folder, such as `det up`: it drains and signs in any user."""

    def __init__(self, secret: bytes, join_token: str, operator_token: str) -> None:
        self._secret = secret
        self.join_token = join_token
        self.operator_token = operator_token

    @classmethod
    def load(cls, data: Path) -> "Secrets":
        """Reads the secrets, and makes those that do not exist. Raises DamagedSecret."""
        secret = _kept(data / SECRET)
        try:
            key = bytes.fromhex(secret)
        except ValueError:
            raise DamagedSecret(data / SECRET) from None
        return cls(key, _kept(data / AGENT_TOKEN), _kept(data / OPERATOR_TOKEN))

    def task_token(self, allocation_id: str) -> str:
        return f"{TASK_TOKEN_PREFIX}.{allocation_id}.{self._derive('token', allocation_id)}"

    def allocation_key(self, allocation_id: str) -> str:
        return self._derive("key", allocation_id)

    @property
    def ssh_secret(self) -> bytes:
        """Returns the secret from which keys of SSH are derived."""
        return bytes.fromhex(self._derive("ssh", ""))

    def allocation_of(self, token: str) -> str | None:
        """Returns the allocation id of a task token, or None for a forged token."""
        prefix, _, rest = token.partition(".")
        allocation_id, _, signature = rest.rpartition(".")
        if prefix != TASK_TOKEN_PREFIX or not allocation_id:
            return None
        expected = self._derive("token", allocation_id)
        return allocation_id if hmac.compare_digest(expected.encode(), signature.encode()) else None

    def _derive(self, purpose: str, what: str) -> str:
        return hmac.new(self._secret, f"{purpose}:{what}".encode(), hashlib.sha256).hexdigest()


def token_hash(token: str) -> str:
    """Returns the hash of a sign-in token; only the hash is stored."""
    return hashlib.sha256(token.encode()).hexdigest()


def generated_password(length: int = 20) -> str:
    """Generates a password with upper-case, lower-case and digit characters."""
    alphabet = string.ascii_letters + string.digits
    while True:
        password = "".join(secrets.choice(alphabet) for _ in range(length))
        if (
            any(c.islower() for c in password)
            and any(c.isupper() for c in password)
            and any(map(str.isdigit, password))
        ):
            return password


OPERATOR_TOKEN = "operator-token"
_CONSEQUENCES = {
    SECRET: "running tasks are ended",
    AGENT_TOKEN: "agents need a copy of it",
    OPERATOR_TOKEN: "programs that use it need a copy of it",
}


class DamagedSecret(Exception):
    """A file of a secret is empty, cut off or changed. Whoever knows its content could forge tokens."""

    def __init__(self, path: Path) -> None:
        super().__init__(
            f"{path} is damaged: it has less than {MIN_CHARACTERS} characters, or others than a secret has. Restore it "
            f"from a backup (`det-master restore`), or remove it and start the master again, which makes a new one: "
            f"then {_CONSEQUENCES[path.name]}"
        )


def _kept(path: Path) -> str:
    if path.exists():
        value = path.read_text(errors="replace").strip()
        if len(value) < MIN_CHARACTERS or not value.isascii() or not value.isprintable():
            raise DamagedSecret(path)
        return value
    value = secrets.token_hex(32)
    write_atomic(path, value)
    return value
