"""Ed25519 keys of a task's host and of its user, derived from a secret of the cluster. Pure.

A key is the same as long as the secret is, also after a restart of the master, and nothing is stored for a task.
"""

import hashlib
import hmac
from typing import NamedTuple

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_ssh_public_key,
)

from determined.errors import BadRequest


class KeyPair(NamedTuple):
    """A key in the formats of OpenSSH. The private one is a file of it, of which the key alone is always the same."""

    private_openssh: str
    public_openssh: str

    def __repr__(self) -> str:
        return f"KeyPair({self.public_openssh})"


def host_key(secret: bytes, task_id: str) -> KeyPair:
    """Returns the key by which a client knows the host of a task.

    >>> host_key(b"secret", "1.a").public_openssh == host_key(b"secret", "1.b").public_openssh
    False
    """
    return _pair(secret, "host", task_id)


def user_key(secret: bytes, task_id: str) -> KeyPair:
    """Returns the key that lets a client into a shell, which has no token to show."""
    return _pair(secret, "user", task_id)


def checked_public_key(text: str) -> str:
    """Returns a client's public key without its comment. Raises BadRequest for any other text."""
    words = text.split(maxsplit=2)
    line = " ".join(words[:2])  # type, key
    try:
        key = load_ssh_public_key(line.encode())
    except (ValueError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PublicKey):
        raise BadRequest("ssh.publicKey: a key of the type ssh-ed25519 is needed, as ssh-keygen -t ed25519 makes it")
    return line


def _pair(secret: bytes, whose: str, task_id: str) -> KeyPair:
    seed = hmac.new(secret, f"ssh-{whose}:{task_id}".encode(), hashlib.sha256).digest()
    key = Ed25519PrivateKey.from_private_bytes(seed)
    private = key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
    public = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
    return KeyPair(private.decode(), public.decode())
