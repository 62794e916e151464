"""The state of the code from which an experiment was created. Its secrets are masked before it is stored."""

import re
import zlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from determined.config.masking import MASK, is_secret_name, secret_values, without_url_passwords

MAX_SECRETS = 1000
"""The text is compared with each of them; a diff is not stored beside more."""
_FIELD = re.compile(
    r"""^([ +-]\s*(?:-\s+)?["']?(?:access_key|secret_key|connection_string|credential|password|auth|identitytoken"""
    r"""|registrytoken)["']?\s*:\s*)\S.*$""",
    re.IGNORECASE,
)
"""A line of a configuration that has a secret, also one that was removed and that no present configuration has."""
_VARIABLE = re.compile(r"""^([ +-]\s*(?P<item>-\s+["']?)?(?:export\s+)?(?P<name>[A-Za-z_][\w.-]*)\s*=\s*)\S.*$""")


@dataclass(frozen=True)
class CodeState:
    """``diff``: uncommitted changes of tracked files, as far as they were sent (``is_cut``: not all). ``untracked``:
    files of the context that git does not know."""

    commit: str | None = None
    branch: str | None = None
    remote: str | None = None
    diff: str = ""
    is_cut: bool = False
    untracked: tuple[str, ...] = ()


@dataclass(frozen=True)
class StoredCode:
    """The state of the code without secrets, and its diff as it is stored."""

    state: CodeState
    diff: bytes


def prepare(state: CodeState, config: Mapping[str, Any]) -> StoredCode:
    """Masks the secrets of the configuration in the state of the code, and compresses the diff. Takes milliseconds."""
    secrets = sorted(secret_values(config), key=len, reverse=True)
    if len(secrets) > MAX_SECRETS:
        state = replace(state, diff="", is_cut=True)
        secrets = []
    shown = CodeState(
        commit=state.commit,
        branch=_masked(state.branch, secrets),
        remote=_masked(state.remote, secrets),
        is_cut=state.is_cut,
        untracked=tuple(_without(name, secrets) for name in state.untracked),
    )
    lines = [_masked_line(line) for line in _without(state.diff, secrets).split("\n")]
    return StoredCode(shown, zlib.compress("\n".join(lines).encode()))


def text_of(diff: bytes) -> str:
    """Returns the text of a stored diff."""
    return zlib.decompress(diff).decode()


def _masked(text: str | None, secrets: Collection[str]) -> str | None:
    return None if text is None else without_url_passwords(_without(text, secrets))


def _without(text: str, secrets: Collection[str]) -> str:
    for secret in sorted(secrets, key=len, reverse=True):  # one may contain another
        text = text.replace(secret, MASK)
    return text


def _masked_line(line: str) -> str:
    if "@" in line:
        line = without_url_passwords(line)
    if ":" in line and (field := _FIELD.match(line)):
        return f"{field[1]}{MASK}"
    if "=" in line and (variable := _VARIABLE.match(line)):
        name = variable["name"]
        # In code, names in lower case are variables of a program far more often than secrets.
        if is_secret_name(name) and (name.isupper() or variable["item"]):
            return f"{variable[1]}{MASK}"
    return line
