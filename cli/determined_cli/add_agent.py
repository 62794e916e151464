"""The command that adds an agent to a cluster; `det up` and `det agent list` print it."""

import shlex
import socket
from pathlib import Path
from urllib.parse import urlsplit

LOOPBACK = ("127.0.0.1", "localhost", "::1")


def command(url: str, token_file: Path | str, certificate: Path | str = "") -> str:
    """Returns the command line.

    >>> command("http://gpu-1:8080", "agent-token")
    'det-agent --master http://gpu-1:8080 --token-file agent-token --tasks-as-me'
    """
    trusted = ["--master-cert-file", str(certificate)] if certificate else []
    return shlex.join(["det-agent", "--master", url, "--token-file", str(token_file), *trusted, "--tasks-as-me"])


def hint(url: str, token_file: Path | str, certificate: Path | str = "") -> str:
    """Returns the line that is printed, with what another machine needs. ``certificate`` is the master's, for machines
    that may not trust it by themselves."""
    text = f"add an agent: {command(url, token_file, certificate)}"
    if urlsplit(url).hostname in LOOPBACK:
        return f"{text} (from other machines: det up --host 0.0.0.0)"
    copies = "copies of agent-token and the certificate" if certificate else "a copy of agent-token"
    return f"{text} (on another machine, with {copies} of the master's data folder)"


def reachable(url: str) -> str:
    """Returns the address of a master that listens on all interfaces, as other machines reach it.

    >>> reachable("http://0.0.0.0:8080") == f"http://{socket.gethostname()}:8080"
    True
    """
    return url.replace("//0.0.0.0:", f"//{socket.gethostname()}:", 1)
