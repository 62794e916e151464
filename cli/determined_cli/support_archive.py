"""Archives for support: parts that are read one by one, without secrets."""

import io
import json
import re
import tarfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from determined.config.masking import MASK, is_secret_name, without_url_passwords
from determined.errors import ApiError
from determined_cli.terminal.messages import say

_SECRETS = (
    (re.compile(r"(?i)\b(bearer\s+)[\w.~+/=-]{8,}"), rf"\g<1>{MASK}"),
    (
        re.compile(
            r"(?i)((?:password|passwd|secret|token|credential|(?:api|access|secret|private)[_-]?key)"
            r"[\w-]*[\"']?\s*[=:]\s*)(?P<quote>[\"']?)(?:(?<=[\"'])(?:\\.|(?!(?P=quote)).)+|[^\s\"',;}]+)"
        ),
        rf"\g<1>\g<quote>{MASK}",
    ),
)
"""Patterns of secrets in text. The master masks configurations itself; log lines are the user's own output."""


def write_archive(folder: str, name: str, parts: Mapping[str, Callable[[], str]]) -> Path:
    """Writes ``NAME-TIME.tar.gz`` and returns its path. A part that cannot be read is replaced by the error.

    Args:
        folder: where to put the archive; made if it is missing.
        name: beginning of the archive's name.
        parts: for each file of the archive a function that returns its text.
    """
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    whole = f"{name}-{time.strftime('%Y%m%dT%H%M%S')}"
    file = target / f"{whole}.tar.gz"
    with tarfile.open(file, "w:gz") as archive:
        for part, read in parts.items():
            try:
                text = read()
            except ApiError as error:
                say(f"{part}: {error.message}")
                part, text = f"{part}.error", f"{error.message}\n"
            _add(archive, f"{whole}/{part}", text)
    return file


def as_json(value: object) -> str:
    """Returns ``value`` as indented JSON, in which every text is without secrets."""
    return json.dumps(_masked(value), indent=2, ensure_ascii=False) + "\n"


def without_secrets(text: str) -> str:
    """Returns ``text`` with passwords in URLs and values that follow the name of a secret replaced.

    >>> without_secrets("db postgres://ann:hunter2@host, api_key=abc")
    'db postgres://ann:********@host, api_key=********'
    >>> without_secrets('{"password": "correct horse", "port": 1}')
    '{"password": "********", "port": 1}'
    """
    text = without_url_passwords(text)
    for pattern, replacement in _SECRETS:
        text = pattern.sub(replacement, text)
    return text


def _masked(value: object) -> object:
    """Returns a copy in which every text is without secrets."""
    if isinstance(value, dict):
        return {
            key: MASK if each and isinstance(each, str) and is_secret_name(str(key)) else _masked(each)
            for key, each in value.items()
        }
    if isinstance(value, list):
        return [_masked(each) for each in value]
    return without_secrets(value) if isinstance(value, str) else value


def _add(archive: tarfile.TarFile, name: str, text: str) -> None:
    data = text.encode()
    member = tarfile.TarInfo(name)
    member.size, member.mtime = len(data), int(time.time())
    archive.addfile(member, io.BytesIO(data))
