"""A small TLS server, and certificates for it."""

import contextlib
import ssl
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from determined_master.server.tls import make_pair

ANSWER = b'{"token": "T"}'


@dataclass(frozen=True)
class Pair:
    """Paths of a certificate and its key."""

    certificate: Path
    key: Path


def written_pair(folder: Path, *names: str, age_days: int = 0, days: int = 30) -> Pair:
    """Writes a self-signed pair that is ``age_days`` old and valid for ``days``."""
    certificate, key = make_pair(names or ("127.0.0.1",), datetime.now(UTC) - timedelta(days=age_days), days=days)
    folder.mkdir(parents=True, exist_ok=True)
    pair = Pair(folder / "master.crt", folder / "master.key")
    pair.certificate.write_bytes(certificate)
    pair.key.write_bytes(key)
    return pair


def pair_of_older_tools(folder: Path, name: str, field: x509.ObjectIdentifier = x509.NameOID.COMMON_NAME) -> Pair:
    """Writes a self-signed pair whose certificate has its name in a field of the subject alone."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(field, name)])
    now = datetime.now(UTC)
    certificate = x509.CertificateBuilder(subject, subject, key.public_key(), 1, now, now + timedelta(days=1))
    folder.mkdir(parents=True, exist_ok=True)
    pair = Pair(folder / "master.crt", folder / "master.key")
    pair.certificate.write_bytes(certificate.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    pair.key.write_bytes(key.private_bytes(*form))
    return pair


class _Answer(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(ANSWER)))
        self.end_headers()
        self.wfile.write(ANSWER)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.do_GET()

    def log_message(self, *_: object) -> None:
        pass


class _QuietServer(ThreadingHTTPServer):
    daemon_threads = True
    refused = 0

    def handle_error(self, *_: object) -> None:
        """Counts a refused handshake instead of printing it."""
        self.refused += 1

    def finish_request(self, request: ssl.SSLSocket, client_address: object) -> None:  # type: ignore[override]
        request.do_handshake()
        super().finish_request(request, client_address)  # type: ignore[arg-type]


@contextlib.contextmanager
def tls_server(pair: Pair) -> Iterator[tuple[str, _QuietServer]]:
    """Yields the URL of a server with this certificate, and the server, which counts refused handshakes."""
    server = _QuietServer(("127.0.0.1", 0), _Answer)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.certificate, pair.key)
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"https://127.0.0.1:{server.server_port}", server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
