"""The connection to the master: a persistent connection, a token, a retry policy, and errors as exceptions.

Standard library only and fast to import: the command line starts with it, and it works in any user's environment.
"""

import contextlib
import http.client
import json
import os
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode, urlsplit

from determined.errors import ApiError, MasterUnreachable, UntrustedCertificate, from_answer

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ssl

    from determined.client.certificates import Trust

AWAY = frozenset({502, 503, 504})
"""HTTP statuses that mean that the master does not answer at the moment."""

ALLOCATION_HEADER = "Grpc-Metadata-x-allocation-token"


class Retry(NamedTuple):  # no dataclass, which would add an eighth to the start of the command line
    """Retry policy while the master does not answer. ``attempts=None`` retries for ever."""

    attempts: int | None = 5
    first_delay: float = 0.1
    factor: float = 2.0
    longest_delay: float = 2.0

    def delays(self) -> Iterator[float]:
        """Yields the pauses between the attempts, in seconds."""
        delay, left = self.first_delay, self.attempts
        while left is None or left > 1:
            yield delay
            delay = min(delay * self.factor, self.longest_delay)
            left = None if left is None else left - 1


ONCE = Retry(attempts=1)
FOR_EVER = Retry(attempts=None)


_REPEATABLE = ("GET", "HEAD", "PUT", "DELETE")
"""Methods whose requests may be carried out twice."""


class Session:
    """Requests to one master, from any thread; each thread has a connection of its own.

    >>> session = Session("http://127.0.0.1:8080/prefix", token="T")
    >>> session.url("/api/v1/me", {"a": [1, 2]})
    '/prefix/api/v1/me?a=1&a=2'
    """

    def __init__(
        self,
        master: str,
        *,
        token: str | None = None,
        allocation_token: str | None = None,
        retry: Retry = Retry(),
        timeout: float = 60.0,
        trust: "Trust | None" = None,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        parts = urlsplit(master if "://" in master else f"http://{master}")
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise MasterUnreachable(f"{master!r} is not the address of a master; use the form http://host:8080")
        self.master = master
        self._secure = parts.scheme == "https"
        self._host = parts.hostname
        self._port = parts.port or (443 if self._secure else 8080)
        self._prefix = parts.path.rstrip("/")
        self._headers = {"Accept": "application/json"}
        if token:
            self._headers["Authorization"] = f"Bearer {token}"
        elif allocation_token:
            self._headers[ALLOCATION_HEADER] = f"Bearer {allocation_token}"
        self._retry = retry
        self._timeout = timeout
        self._sleep = sleep
        self._local = threading.local()
        self._lock = threading.Lock()
        self._open: set[http.client.HTTPConnection] = set()
        self._closed = False
        self._pid = os.getpid()
        self._trust = trust
        self._tls: ssl.SSLContext | None = None

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def headers(self) -> dict[str, str]:
        """Returns the headers of every request, with the token."""
        return dict(self._headers)

    def close(self) -> None:
        """Closes the connections of all threads; a request in progress in another thread fails immediately. Those of
        ``stream`` and ``open`` end with their readers."""
        self._closed = True
        with self._lock:
            connections, self._open = self._open, set()
        for connection in connections:
            if connection.sock is not None:
                with contextlib.suppress(OSError):
                    connection.sock.shutdown(socket.SHUT_RDWR)  # close alone does not wake a reading thread
            connection.close()

    def url(self, path: str, query: Mapping[str, Any] | None = None) -> str:
        """Returns path and query as sent: lists repeat their key, None is omitted."""
        pairs = [(key, _plain(value)) for key, value in (query or {}).items() if value is not None]
        text = urlencode(pairs, doseq=True)
        return self._prefix + quote(path, safe="/:@!$&'()*+,;=%") + (f"?{text}" if text else "")

    def get(self, path: str, query: Mapping[str, Any] | None = None, **options: Any) -> Any:  # noqa: ANN401  # decoded JSON, which the caller checks
        """Returns the decoded answer of a GET."""
        return self.request("GET", path, query=query, **options)

    def post(self, path: str, body: Any = None, **options: Any) -> Any:  # noqa: ANN401  # decoded JSON, which the caller checks
        """Returns the decoded answer of a POST."""
        return self.request("POST", path, {} if body is None else body, **options)

    def patch(self, path: str, body: Any = None, **options: Any) -> Any:  # noqa: ANN401  # decoded JSON, which the caller checks
        """Returns the decoded answer of a PATCH."""
        return self.request("PATCH", path, {} if body is None else body, **options)

    def delete(self, path: str, **options: Any) -> Any:  # noqa: ANN401  # decoded JSON, which the caller checks
        """Returns the decoded answer of a DELETE."""
        return self.request("DELETE", path, **options)

    def request(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        query: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
        retry: Retry | None = None,
    ) -> Any:  # noqa: ANN401  # decoded JSON, which the caller checks
        """Returns the answer, decoded if it is JSON and as bytes otherwise.

        Raises :class:`ApiError` and its subclasses.

        Bytes as ``body`` are sent unchanged. Without a retry policy, a request is retried if it cannot have been
        carried out (no connection, or 503 with ``Retry-After``: the master's disk is full), and if it may be repeated
        (GET, PUT, DELETE) also after 502, 503 and 504.
        """
        safe = retry is not None or method in _REPEATABLE
        delays = (retry or self._retry).delays()
        while True:
            try:
                response = self._send(method, path, body, query, headers, timeout)
                return _decode(response, self._read(response))
            except (AttributeError, ValueError, OSError) as error:
                # http.client raises these if another thread has closed its socket
                if not self._closed:
                    raise
                raise MasterUnreachable("the session is closed") from error
            except MasterUnreachable as error:
                delay = next(delays, None)
                if delay is None or not (safe or error.is_unsent):
                    raise
                # A person has to see it at once; a task outlives a change of the certificate.
                if isinstance(error, UntrustedCertificate) and (retry or self._retry).attempts is not None:
                    raise
                self._sleep(delay)

    def stream(
        self, path: str, query: Mapping[str, Any] | None = None, *, method: str = "GET", body: object = None
    ) -> Iterator[Any]:
        """Yields the ``result`` of each JSON line on arrival and raises an ``error`` line."""
        # streams may be silent for long, and the persistent connection must stay free for other calls
        connection = self._connect(None)
        try:
            response = self._exchange(connection, method, self.url(path, query), body, {})
            if response.status != 200:
                raise _error(response.status, response.read())
            while line := response.readline():
                value = json.loads(line)
                if value.get("error"):
                    error = value["error"]
                    raise from_answer(
                        int(error.get("httpCode") or 500), error.get("grpcCode"), error.get("message", "")
                    )
                yield value.get("result")
        except (OSError, http.client.HTTPException) as error:
            raise MasterUnreachable(f"the stream from {self.master} was interrupted: {_why(error)}") from None
        finally:
            connection.close()

    @contextlib.contextmanager
    def open(self, path: str, *, headers: Mapping[str, str] | None = None) -> Iterator[http.client.HTTPResponse]:
        """Opens the body of a GET as a binary stream, for files that are too large for the memory."""
        connection = self._connect(self._timeout)
        try:
            try:
                response = self._exchange(connection, "GET", self.url(path), None, headers or {})
            except OSError as error:
                raise self._unreachable(error, unsent=False) from None
            if response.status != 200:
                raise _error(response.status, response.read())
            yield response
        except (ConnectionError, TimeoutError, http.client.HTTPException) as error:
            raise MasterUnreachable(f"the download from {self.master} was interrupted: {_why(error)}") from None
        finally:
            connection.close()

    def _send(
        self,
        method: str,
        path: str,
        body: object,
        query: Mapping[str, Any] | None,
        headers: Mapping[str, str] | None,
        timeout: float | None,
    ) -> http.client.HTTPResponse:
        connection = self._connection(timeout or self._timeout)
        try:
            return self._exchange(connection, method, self.url(path, query), body, headers or {})
        except (OSError, http.client.HTTPException) as error:
            self._forget(connection)
            unreachable = self._unreachable(error, unsent=False)
            if method not in _REPEATABLE:
                unreachable.message += "; the request may have been carried out: look before you repeat it"
                unreachable.args = (unreachable.message,)
            raise unreachable from None

    def _exchange(
        self, connection: http.client.HTTPConnection, method: str, url: str, body: object, headers: Mapping[str, str]
    ) -> http.client.HTTPResponse:
        if connection.sock is None:
            try:
                connection.connect()
            except OSError as error:
                raise self._unreachable(error, unsent=True) from None
        if self._closed:
            connection.close()
            raise MasterUnreachable("the session is closed")
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        kind = {} if data is None or isinstance(body, bytes) else {"Content-Type": "application/json"}
        connection.request(method, url, data, {**self._headers, **kind, **headers})
        return connection.getresponse()

    def _read(self, response: http.client.HTTPResponse) -> bytes:
        try:
            data = response.read()
        except (OSError, http.client.HTTPException) as error:
            self._forget(self._local.connection)
            raise self._unreachable(error, unsent=False) from None
        if response.will_close:
            self._forget(self._local.connection)
        return data

    def _unreachable(self, error: Exception, *, unsent: bool) -> MasterUnreachable:
        hint = ""
        if not self._secure and isinstance(error, (http.client.RemoteDisconnected, http.client.BadStatusLine)):
            hint = " (if the master uses TLS, its address begins with https://)"
        text = f"the master at {self.master} does not answer: {_why(error)}{hint}"
        result = self._untrusted(error) or MasterUnreachable(text)
        result.is_unsent = unsent
        result.is_refused = isinstance(error, ConnectionRefusedError)
        return result

    def _connection(self, timeout: float) -> http.client.HTTPConnection:
        """Returns this thread's connection; opens a new one if the other side has closed it."""
        if os.getpid() != self._pid:  # forked: the connections are used by the other process, and a lock may be held
            self._local, self._lock, self._open, self._pid = threading.local(), threading.Lock(), set(), os.getpid()
        kept: http.client.HTTPConnection | None = getattr(self._local, "connection", None)
        if kept is not None and kept.sock is not None and not _is_readable(kept.sock):
            kept.sock.settimeout(timeout)
            return kept
        if kept is not None:
            self._forget(kept)
        connection = self._connect(timeout)
        self._local.connection = connection
        with self._lock:
            self._open.add(connection)
        return connection

    def _connect(self, timeout: float | None) -> http.client.HTTPConnection:
        connection = (
            self._secured(timeout)
            if self._secure
            else http.client.HTTPConnection(self._host, self._port, timeout=timeout)
        )
        connection.auto_open = 0  # a connection that another thread has closed must not reconnect by itself
        return connection

    def _secured(self, timeout: float | None) -> http.client.HTTPConnection:
        from determined.client import certificates

        with self._lock:
            if self._tls is None:
                self._trust = self._trust or certificates.trust_of(self.master)
                self._tls = certificates.context(self._trust)
        name = self._trust.name if self._trust else ""
        return certificates.SecureConnection(self._host, self._port, timeout=timeout, context=self._tls, name=name)

    def _untrusted(self, error: Exception) -> MasterUnreachable | None:
        if not self._secure or self._trust is None:
            return None
        from determined.client import certificates

        return certificates.refusal(error, self.master, self._trust)

    def _forget(self, connection: http.client.HTTPConnection) -> None:
        self._local.connection = None
        with self._lock:
            self._open.discard(connection)
        connection.close()


def _is_readable(connection: socket.socket) -> bool:
    """Returns True if the other side has closed a connection that waits for nothing."""
    poll = select.poll()  # select.select refuses descriptors from 1024 on
    poll.register(connection, select.POLLIN)
    return bool(poll.poll(0))


def _plain(value: object) -> object:
    if isinstance(value, bool):
        return "true" if value else "false"
    return [_plain(item) for item in value] if isinstance(value, (list, tuple)) else value


def _why(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "timed out"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return str(error) or type(error).__name__


def _decode(response: http.client.HTTPResponse, data: bytes) -> object:
    if response.status != 200:
        error = _error(response.status, data)
        if response.headers.get("Retry-After") and isinstance(error, MasterUnreachable):
            error.is_unsent = True
        raise error
    if "json" in (response.headers.get("Content-Type") or "json"):
        return json.loads(data) if data else {}
    return data


def _error(status: int, data: bytes) -> ApiError:
    """Returns the exception for an answer.

    ``.answer`` has its whole body, such as the diagnostics of a configuration.
    """
    try:
        answer = json.loads(data)
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        answer = {"message": data.decode("utf-8", "replace").strip()[:500]}
    return error_of(status, answer)


def error_of(status: int, answer: Mapping[str, Any]) -> ApiError:
    """Returns the exception for a decoded answer, or for one entry of it that has the form of an error."""
    inner = answer.get("error")
    inner = inner if isinstance(inner, dict) else {"error": inner}
    text = answer.get("message") or inner.get("message") or inner.get("error") or f"the master answered {status}"
    code = inner.get("code")
    if status in AWAY:
        return MasterUnreachable(str(text), answer=answer, status=status)
    return from_answer(status, code if isinstance(code, int) else None, str(text), answer)
