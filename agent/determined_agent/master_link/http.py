"""The agent's HTTP requests to its master: contexts and output, over persistent connections."""

import functools
import ssl
from collections.abc import Callable
from dataclasses import dataclass

import httpx

from determined.client import certificates
from determined.client.certificates import Trust

_PIECE_BYTES = 1 << 18
MAX_KEPT = 4
"""Idle connections that a shared client keeps."""


class HttpError(Exception):
    """Raised if there is no answer, or one that cannot be read."""


@dataclass(frozen=True)
class HttpAnswer:
    status: int
    body: bytes


class HttpClient:
    """One connection to the master for one caller at a time; opened again if it is closed.

    ``trust`` says which certificate is accepted. ``timeout`` limits each wait, in seconds: for the connection, for
    sending, and for each chunk of an answer. ``is_shared``: for any number of callers at a time, each of which has a
    connection meanwhile. Proxies of the environment are not used; they are meant for tasks.
    """

    def __init__(
        self, base: str, token: str, *, trust: Trust = Trust(), timeout: float = 30.0, is_shared: bool = False
    ) -> None:
        kept = MAX_KEPT if is_shared else 1
        self._extensions = {"sni_hostname": trust.name} if trust.name else {}
        self._client = httpx.AsyncClient(
            base_url=base,
            headers={"Authorization": f"Bearer {token}"},
            timeout=timeout,
            trust_env=False,
            verify=tls(trust) if base.startswith("https:") else False,
            limits=httpx.Limits(
                max_connections=None if is_shared else 1, max_keepalive_connections=kept, keepalive_expiry=None
            ),
        )
        self._kept = kept
        self._has_connected = False

    async def request(
        self, method: str, path: str, body: bytes = b"", *, sink: Callable[[bytes], object] | None = None
    ) -> HttpAnswer:
        """Sends one request. ``sink`` receives the body of a 200 in chunks. Raises HttpError."""
        # The master may have closed idle connections; as many attempts more follow.
        retries = self._kept if self._has_connected and sink is None else 0
        while True:
            try:
                answer = await self._exchange(method, path, body, sink)
            except httpx.TimeoutException as error:
                raise HttpError(f"{method} {path}: timed out") from error
            except httpx.TransportError as error:
                if not retries:
                    raise HttpError(f"{method} {path}: {error or type(error).__name__}") from error
                retries -= 1
            else:
                self._has_connected = True
                return answer

    async def aclose(self) -> None:
        """Closes the connection."""
        await self._client.aclose()

    async def _exchange(
        self, method: str, path: str, body: bytes, sink: Callable[[bytes], object] | None
    ) -> HttpAnswer:
        headers = {"Content-Type": "application/json", "Content-Length": str(len(body))}
        async with self._client.stream(
            method, path, content=body, headers=headers, extensions=self._extensions
        ) as answer:
            if sink is None or answer.status_code != 200:
                return HttpAnswer(answer.status_code, await answer.aread())
            async for piece in answer.aiter_bytes(_PIECE_BYTES):
                sink(piece)
            return HttpAnswer(answer.status_code, b"")


@functools.cache
def tls(trust: Trust) -> ssl.SSLContext:
    """Returns the TLS context of connections to the master; creating one takes milliseconds."""
    return certificates.context(trust)
