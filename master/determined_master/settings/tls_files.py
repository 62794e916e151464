"""The certificate and the key that the settings name."""

import ssl
from pathlib import Path


def check_tls_files(cert: Path | None, key: Path | None) -> None:
    """Checks that the master can serve with a certificate and its key, or with none. Raises ValueError."""
    if cert is None and key is None:
        return
    if cert is None or key is None:
        raise ValueError("TLS needs both tls_cert and tls_key")
    for file in (cert, key):
        try:
            file.read_bytes()
        except OSError as error:
            raise ValueError(f"{file}: {error.strerror}") from error
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(cert, key, password=lambda: "")
    except ssl.SSLError as error:
        why = (
            "the key does not belong to the certificate"
            if "MISMATCH" in (error.reason or "")
            else "no PEM file, or an encrypted key"
        )
        raise ValueError(f"cannot use {cert} with {key}: {why}") from error
