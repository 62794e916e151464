"""Mutual authentication: both ends prove that they know the allocation's key without sending it.

The admitting end sends a nonce. The other end answers with its message, a nonce of its own and the HMAC of all three;
the admitting end then proves itself. Each use names its two ends, so that a proof is valid for one use only.
"""

import contextlib
import hashlib
import hmac
import secrets
import socket
import time

SECONDS = 10.0
"""Total time limit for the authentication of a peer."""
_NONCE = 32
_DIGEST = 32


def admit(peer: socket.socket, key: bytes, *, said: int, ends: tuple[bytes, bytes]) -> bytes | None:
    """Returns the ``said`` bytes of an end that knows the key, else None. ``ends``: theirs and ours."""
    deadline = time.monotonic() + SECONDS
    try:
        _tune(peer)
        ours = challenge()
        peer.settimeout(SECONDS)
        peer.sendall(ours)
        admitted = admit_answer(key, ours, _exactly(peer, said + _NONCE + _DIGEST, deadline), ends=ends)
        if admitted is None:
            return None
        text, proof = admitted
        peer.sendall(proof)
        peer.settimeout(None)
        return text
    except (OSError, EOFError):
        return None


def prove(peer: socket.socket, key: bytes, said: bytes, *, ends: tuple[bytes, bytes], patience: float) -> None:
    """Sends ``said`` to the admitting end. Raises ConnectionError if either end does not know the other's key."""
    deadline = time.monotonic() + patience  # the other end may be busy with other peers
    try:
        _tune(peer)
        theirs = _exactly(peer, _NONCE, deadline)
        ours = answer(key, theirs, said, ends=ends)
        peer.sendall(ours)
        if not is_proof(key, theirs, ours, _exactly(peer, _DIGEST, deadline), ends=ends):
            raise ConnectionError(f"the {ends[1].decode()} does not have the allocation's key")
        peer.settimeout(None)
    except EOFError:
        peer.close()
        raise ConnectionError(
            f"the {ends[1].decode()} rejected this connection: it has the key of another allocation"
        ) from None
    except BaseException:
        peer.close()
        raise


def challenge() -> bytes:
    """Returns a new nonce, the first message of the admitting end where messages are sent by other means."""
    return secrets.token_bytes(_NONCE)


def answer(key: bytes, nonce: bytes, said: bytes, *, ends: tuple[bytes, bytes]) -> bytes:
    """Returns the answer to a challenge: ``said``, a nonce and the proof of both. ``ends``: ours and theirs."""
    text = said + challenge()
    return text + _digest(key, ends[0], nonce + text)


def admit_answer(key: bytes, nonce: bytes, answered: bytes, *, ends: tuple[bytes, bytes]) -> tuple[bytes, bytes] | None:
    """Returns what an end that knows the key said, and our proof to it, else None. ``ends``: theirs and ours."""
    text, proof = answered[:-_DIGEST], answered[-_DIGEST:]
    if len(text) < _NONCE or not hmac.compare_digest(proof, _digest(key, ends[0], nonce + text)):
        return None
    return text[:-_NONCE], _digest(key, ends[1], text + nonce)


def is_proof(key: bytes, nonce: bytes, answered: bytes, proof: bytes, *, ends: tuple[bytes, bytes]) -> bool:
    """Returns True if ``proof`` is that of the admitting end to our answer. ``ends``: ours and theirs."""
    return hmac.compare_digest(proof, _digest(key, ends[1], answered[:-_DIGEST] + nonce))


def _digest(key: bytes, end: bytes, text: bytes) -> bytes:
    return hmac.new(key, end + text, hashlib.sha256).digest()


def _tune(peer: socket.socket) -> None:
    with contextlib.suppress(OSError):  # a unix socket has no such option
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def _exactly(peer: socket.socket, count: int, deadline: float) -> bytes:
    """Receives ``count`` bytes before one deadline, so that a slow peer cannot extend it."""
    data = bytearray()
    while len(data) < count:
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError("the other end did not authenticate in time")
        peer.settimeout(left)
        part = peer.recv(count - len(data))
        if not part:
            raise EOFError
        data += part
    return bytes(data)
