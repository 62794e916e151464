"""TLS to a master: which certificate is trusted, by what name, and why a connection was refused."""

import hashlib
import http.client
import os
import ssl
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import NamedTuple

from determined.client import auth_store
from determined.errors import UntrustedCertificate

NO_VERIFY = "noverify"
FILE_VARIABLE = "DET_MASTER_CERT_FILE"
NAME_VARIABLE = "DET_MASTER_CERT_NAME"
_NOT_TLS = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE")
"""OpenSSL's reasons for an answer that is no TLS, by version."""
_BY_TIME = (9, 10)
"""OpenSSL's codes of a certificate that is not valid yet, and of one that has expired."""


class Trust(NamedTuple):
    """Which certificate of a master is trusted. Without any value: those that the machine's authorities have signed.

    ``file`` is a PEM file with the master's certificate or that of its authority, or ``noverify``, which trusts
    everybody. ``name`` is the name in the certificate if it is not the host of the address. ``pinned`` is the PEM text
    of a certificate that a user has confirmed.

    >>> Trust(file="noverify").verifies
    False
    """

    file: str = ""
    name: str = ""
    pinned: str = ""

    @property
    def verifies(self) -> bool:
        """Returns False if every certificate is accepted."""
        return self.file != NO_VERIFY


def trust_of(master: str, environ: Mapping[str, str] = os.environ) -> Trust:
    """Returns what this process trusts: ``DET_MASTER_CERT_FILE``, else the certificate that the user has confirmed.

    Args:
        master: URL of the master.
        environ: variables; ``DET_MASTER_CERT_NAME`` is the name in the certificate.
    """
    name, file = environ.get(NAME_VARIABLE, ""), environ.get(FILE_VARIABLE, "")
    if file:
        return Trust(file, name)
    return Trust(name=name, pinned=auth_store.certificate(auth_store.read(), master) or "")


def context(trust: Trust) -> ssl.SSLContext:
    """Returns a TLS context for a client. Raises UntrustedCertificate if the file cannot be used."""
    if not trust.verifies:
        made = ssl.create_default_context()
        made.check_hostname = False
        made.verify_mode = ssl.CERT_NONE
        return made
    try:
        made = ssl.create_default_context(cafile=trust.file or None, cadata=trust.pinned or None)
    except (OSError, ValueError) as error:
        why = "it has no certificate in PEM format"
        if isinstance(error, OSError) and not isinstance(error, ssl.SSLError):
            why = str(error.strerror)
        source = f"{FILE_VARIABLE}: {trust.file}" if trust.file else "the stored certificate"
        raise UntrustedCertificate(f"{source}: {why}") from error
    if trust.file or trust.pinned:
        # The master's own certificate is enough, whoever has signed it.
        made.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    if trust.pinned:
        made.check_hostname = False  # the user confirmed this certificate for this address
    return made


class SecureConnection(http.client.HTTPSConnection):
    """A connection whose certificate may bear another name than the host of the address."""

    def __init__(self, host: str, port: int, *, timeout: float | None, context: ssl.SSLContext, name: str = "") -> None:
        super().__init__(host, port, timeout=timeout, context=context)
        self._tls = context
        self._name = name or host

    def connect(self) -> None:
        http.client.HTTPConnection.connect(self)
        plain = self.sock
        try:
            self.sock = self._tls.wrap_socket(plain, server_hostname=self._name)
        except BaseException:
            plain.close()
            self.sock = None
            raise


def refusal(error: BaseException, master: str, trust: Trust) -> UntrustedCertificate | None:
    """Returns the error to raise for a failed handshake, or None if TLS was not the reason.

    Args:
        error: what the connection raised.
        master: URL of the master, for the text.
        trust: what was trusted.
    """
    if isinstance(error, ssl.SSLCertVerificationError):
        way = _clock() if error.verify_code in _BY_TIME else _way(trust)
        text = f"the certificate of {master} is not trusted: {error.verify_message}; {way}"
        result = UntrustedCertificate(text)
        result.master = "" if trust.file else master
        return result
    if isinstance(error, ssl.SSLError) and error.reason in _NOT_TLS:
        return UntrustedCertificate(f"the program at {master} does not speak TLS; its address may begin with http://")
    return None


def _clock() -> str:
    now = datetime.now(timezone.utc)
    return f"the clock of this machine shows {now:%Y-%m-%d %H:%M} UTC: set it, or have the certificate replaced"


def _way(trust: Trust) -> str:
    if trust.file:
        return f"{FILE_VARIABLE} names {trust.file}, which is not its certificate nor that of its authority"
    if trust.pinned:
        return "it is not the one that was confirmed before; ask the admin, then confirm it with `det user login`"
    return f"name the file with its certificate in {FILE_VARIABLE}, or run `det user login` on a terminal to confirm it"


def fetch(host: str, port: int, *, timeout: float = 10.0) -> str:
    """Returns the certificate that a server presents, as PEM, without trusting it. Raises OSError."""
    return ssl.get_server_certificate((host, port), timeout=timeout)


def fingerprint(pem: str) -> str:
    """Returns the SHA-256 of a certificate, as browsers show it.

    Args:
        pem: the certificate as PEM.
    """
    digest = hashlib.sha256(ssl.PEM_cert_to_DER_cert(pem)).hexdigest().upper()
    return ":".join(digest[place : place + 2] for place in range(0, len(digest), 2))


def names(pem: str) -> list[str]:
    """Returns the hosts and addresses that a certificate is for. Needs the package ``cryptography``.

    Those of its field SubjectAlternativeName; its common name if it has none, as OpenSSL does.

    Args:
        pem: the certificate as PEM, or several of which the first counts.
    """
    from cryptography import x509  # neither tasks nor most commands load it

    found = x509.load_pem_x509_certificates(pem.encode())[0]
    try:
        alternatives = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return [str(each.value) for each in found.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)]
    hosts = (x509.DNSName, x509.IPAddress)
    return [str(each.value) for each in alternatives if isinstance(each, hosts)]


def verified_name(pem: str) -> str:
    """Returns a name by which a certificate is verified at any address; empty if it names no host.

    Args:
        pem: as in ``names``.
    """
    # No host is called "*.lab"; any name in the place of the star fits.
    return next((name.replace("*", "master", 1) for name in names(pem)), "")
