"""Finds the user's key of Weights & Biases on the node. It is never printed and never written."""

from __future__ import annotations

import os
from collections.abc import Mapping

FILES = ("wandb_credentials.txt", ".wandb_api_key")
"""Files in the home folder whose last word is the key."""
HOST = "api.wandb.ai"
MAX_BYTES = 1 << 16


def find(environ: Mapping[str, str]) -> str | None:
    """Returns the key of the variable, of the user's file, or of ``~/.netrc``; None if there is none."""
    if environ.get("WANDB_API_KEY"):
        return environ["WANDB_API_KEY"]
    home = environ.get("HOME") or os.path.expanduser("~")
    for name in FILES:
        words = _text(os.path.join(home, name)).split()
        if words:
            return words[-1].rpartition("=")[2]
    host = environ.get("WANDB_BASE_URL", "").partition("://")[2].split("/")[0] or HOST
    return _of_netrc(_text(os.path.join(home, ".netrc")), host)


def _of_netrc(text: str, host: str) -> str | None:
    for entry in text.split("machine ")[1:]:
        words = entry.split()
        if words[:1] == [host] and "password" in words[:-1]:
            return words[words.index("password") + 1]
    return None


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(MAX_BYTES)
    except OSError:
        return ""
