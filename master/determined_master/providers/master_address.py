"""The addresses at which agents reach this master."""

import socket
from pathlib import Path

from determined.client import certificates

_ALL = ("0.0.0.0", "::", "")
"""Addresses of a master that listens on all interfaces."""


class MasterAddress:
    """``port`` is set to the one at which the master listens, once it does."""

    def __init__(self, host: str, port: int, certificate: Path | None) -> None:
        self._host = host
        self.port = port
        self._certificate = certificate

    @property
    def certificate(self) -> Path | None:
        """The file with the certificate that the master serves with; None without TLS."""
        return self._certificate

    @property
    def is_loopback(self) -> bool:
        """True if only programs on this machine reach the master."""
        return self._host in ("localhost", "::1") or self._host.startswith("127.")

    @property
    def local(self) -> str:
        """The address for agents on this machine."""
        return self._url(("::1" if self._host == "::" else "127.0.0.1") if self._host in _ALL else self._host)

    @property
    def reachable(self) -> str:
        """The address for agents on other machines."""
        return self._url(socket.gethostname() if self._host in _ALL else self._host)

    @property
    def certificate_options(self) -> list[str]:
        """Options of ``det-agent`` for the certificate that the master serves with, which need not name ``local``."""
        if self._certificate is None:
            return []
        name = certificates.verified_name(self._certificate.read_text())
        return ["--master-cert-file", str(self._certificate), *(["--master-cert-name", name] if name else [])]

    def _url(self, host: str) -> str:
        scheme = "http" if self._certificate is None else "https"
        return f"{scheme}://{f'[{host}]' if ':' in host else host}:{self.port}"
