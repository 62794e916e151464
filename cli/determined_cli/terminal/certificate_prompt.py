"""Asks on the terminal whether the certificate of a master is trusted, and keeps the answer."""

import sys
from urllib.parse import urlsplit

from determined.client import auth_store, certificates
from determined.client.addresses import canonical
from determined.errors import UntrustedCertificate
from determined_cli.terminal.messages import say


def confirm(error: UntrustedCertificate) -> bool:
    """Returns True if the user has confirmed the certificate that the master presents; it is trusted from then on.

    Asks nothing and returns False without a terminal, or if the certificate cannot be fetched.
    """
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    parts = urlsplit(canonical(error.master))
    try:
        pem = certificates.fetch(parts.hostname or "", parts.port or 443)
    except OSError:
        return False
    say(error.message.partition("; ")[0])
    say(f"SHA-256 fingerprint of the certificate:\n  {certificates.fingerprint(pem)}")
    say("Compare it with the one that the master's log shows at its start.")
    sys.stderr.write("Trust this certificate for this master from now on? [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        return False
    auth_store.trust_certificate(error.master, pem)
    return True
