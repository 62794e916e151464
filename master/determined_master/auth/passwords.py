"""Password hashes: the client's own hash, then argon2 over it, in threads of their own, two at a time."""

import hashlib

from argon2 import PasswordHasher
from argon2.exceptions import VerificationError

from determined_master.offloading.threads import Threads

CLIENT_SALT = "GubPEmmotfiK9TMD6Zdw"


def client_hash(password: str) -> str:
    """Returns what a client sends in place of the password; an empty password stays empty."""
    return hashlib.sha512((CLIENT_SALT + password).encode()).hexdigest() if password else ""


class Passwords:
    """argon2id, 19 MiB and two passes; at most two at a time, which bounds the memory of sign-ins."""

    def __init__(self) -> None:
        self._hasher = PasswordHasher(time_cost=2, memory_cost=19 * 1024, parallelism=1)
        self._threads = Threads("passwords", 2)

    async def hash(self, hashed: str) -> str:
        return await self._threads.run(self._hasher.hash, hashed)

    async def verify(self, stored: str, hashed: str) -> bool:
        return await self._threads.run(self._matches, stored, hashed)

    def _matches(self, stored: str, hashed: str) -> bool:
        try:
            return self._hasher.verify(stored, hashed)
        except (VerificationError, ValueError):
            return False


def weakness(password: str) -> str | None:
    """Returns why a plain password is refused, or None."""
    if len(password) < 8:
        return "the password needs 8 characters or more"
    if not any(c.isupper() for c in password):
        return "the password needs an upper-case letter"
    if not any(c.islower() for c in password):
        return "the password needs a lower-case letter"
    if not any(c.isdigit() for c in password):
        return "the password needs a digit"
    return None
