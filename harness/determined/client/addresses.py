"""Canonical addresses of masters, which key the remembered sign-ins."""

from urllib.parse import urlsplit

from determined.errors import MasterUnreachable

DEFAULT = "localhost:8080"


def canonical(address: str) -> str:
    """With scheme and port, without a trailing slash; a path prefix is kept.

    >>> canonical("LOCALHOST"), canonical("https://a/b/")
    ('http://localhost:8080', 'https://a:443/b')
    """
    text = address.strip()
    complaint = f'"{address}" is not the address of a master; use the form http://host:8080'
    try:
        parts = urlsplit(text if "://" in text else f"http://{text}")
        host, port = parts.hostname, parts.port
    except ValueError:
        raise MasterUnreachable(complaint) from None
    if not host or parts.scheme not in ("http", "https"):
        raise MasterUnreachable(complaint)
    if ":" in host:
        host = f"[{host}]"
    return f"{parts.scheme}://{host}:{port or (443 if parts.scheme == 'https' else 8080)}{parts.path.rstrip('/')}"
