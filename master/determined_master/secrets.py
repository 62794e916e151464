"""Secrets in the data folder, and what is derived from them: task tokens and allocation keys."""

import hashlib
import hmac
import secrets
import string
from pathlib import Path

from determined.link.master_folder import AGENT_TOKEN, SECRET
from determined_launch.atomic_file import write_atomic

TASK_TOKEN_PREFIX = "dta1"


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
        return cls(bytes.fromhex(_kept(data / SECRET)), _kept(data / AGENT_TOKEN), _kept(data / "operator-token"))

    def task_token(self, allocation_id: str) -> str:
        return f"{TASK_TOKEN_PREFIX}.{allocation_id}.{self._derive('token', allocation_id)}"

    def allocation_key(self, allocation_id: str) -> str:
        return self._derive("key", allocation_id)

    def allocation_of(self, token: str) -> str | None:
        """Returns the allocation id of a task token, or None for a forged token."""
        prefix, _, rest = token.partition(".")
        allocation_id, _, signature = rest.rpartition(".")
        if prefix != TASK_TOKEN_PREFIX or not allocation_id:
            return None
        expected = self._derive("token", allocation_id)
        return allocation_id if hmac.compare_digest(expected, signature) else None

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


def _kept(path: Path) -> str:
    if path.exists():
        return path.read_text().strip()
    value = secrets.token_hex(32)
    write_atomic(path, value)
    return value
