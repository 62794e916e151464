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
        ours = secrets.token_bytes(_NONCE)
        peer.settimeout(SECONDS)
        peer.sendall(ours)
        answer = _exactly(peer, said + _NONCE + _DIGEST, deadline)
        text, proof = answer[:-_DIGEST], answer[-_DIGEST:]
        if not hmac.compare_digest(proof, _digest(key, ends[0], ours + text)):
            return None
        peer.sendall(_digest(key, ends[1], text + ours))
        peer.settimeout(None)
        return text[:said]
    except (OSError, EOFError):
        return None


def prove(peer: socket.socket, key: bytes, said: bytes, *, ends: tuple[bytes, bytes], patience: float) -> None:
    """Sends ``said`` to the admitting end. Raises ConnectionError if either end does not know the other's key."""
    deadline = time.monotonic() + patience  # the other end may be busy with other peers
    try:
        _tune(peer)
        theirs = _exactly(peer, _NONCE, deadline)
        text = said + secrets.token_bytes(_NONCE)
        peer.sendall(text + _digest(key, ends[0], theirs + text))
        if not hmac.compare_digest(_exactly(peer, _DIGEST, deadline), _digest(key, ends[1], text + theirs)):
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
