"""``det trial support-bundle``: collects what is needed to explain a trial, without secrets, in one archive."""

import io
import json
import re
import tarfile
import time
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

from determined.client import experiments, lifecycle, master, trials
from determined.client.paging import items
from determined.client.session import Session
from determined.config.masking import MASK, masked, masked_text
from determined.errors import ApiError
from determined_cli import __version__, connection, logs
from determined_cli.main import say

_SECRETS = (
    (re.compile(r"(://[^/\s:@]*:)[^/\s@]+@"), rf"\g<1>{MASK}@"),
    (re.compile(r"(?i)\b(bearer\s+)[\w.~+/=-]{8,}"), rf"\g<1>{MASK}"),
    (
        re.compile(
            r"(?i)((?:password|passwd|secret|token|credential|(?:api|access|secret|private)[_-]?key)"
            r"[\w-]*[\"']?\s*[=:]\s*[\"']?)[^\s\"',;}]+"
        ),
        rf"\g<1>{MASK}",
    ),
)
"""Patterns of secrets in text. The master masks configurations itself; log lines are the user's own output."""


def support_bundle(args: Namespace) -> None:
    """Writes the archive and prints its path. A part that cannot be read is replaced by the error."""
    session = connection.connect(args.options)
    trial = trials.get(session, args.trial_id)
    parts = _parts(session, trial)
    target = Path(args.output_dir)
    target.mkdir(parents=True, exist_ok=True)
    name = f"det-bundle-trial-{args.trial_id}-{time.strftime('%Y%m%dT%H%M%S')}"
    file = target / f"{name}.tar.gz"
    with tarfile.open(file, "w:gz") as archive:
        for part, read in parts.items():
            try:
                text = read()
            except ApiError as error:
                say(f"{part}: {error.message}")
                part, text = f"{part}.error", f"{error.message}\n"
            _add(archive, f"{name}/{part}", text)
    say("secrets that were recognized are masked; look through the log before you pass the archive on")
    print(file)


def _parts(session: Session, trial: dict[str, Any]) -> dict[str, Callable[[], str]]:
    trial_id, experiment_id = int(trial["id"]), int(trial["experimentId"])
    workloads = f"/api/v1/trials/{trial_id}/workloads"
    return {
        "versions.json": lambda: _json({"client": __version__, "master": master.info(session)}),
        "trial.json": lambda: _json(trial),
        "attempts.json": lambda: _json(lifecycle.attempts(session, trial_id)),
        "experiment.json": lambda: _json(_experiment(session, experiment_id)),
        "metrics.json": lambda: _json(list(items(session, workloads, "workloads"))),
        "log.txt": lambda: without_secrets("".join(map(logs.message, logs.lines(session, trial_id)))),
    }


def _experiment(session: Session, experiment_id: int) -> dict[str, Any]:
    found = experiments.get(session, experiment_id)
    found["config"] = masked(found.get("config") or {})
    found["originalConfig"] = masked_text(str(found.get("originalConfig") or ""))
    return found


def without_secrets(text: str) -> str:
    """Returns ``text`` with passwords in URLs and values that follow the name of a secret replaced.

    >>> without_secrets("db postgres://ann:hunter2@host, api_key=abc")
    'db postgres://ann:********@host, api_key=********'
    """
    for pattern, replacement in _SECRETS:
        text = pattern.sub(replacement, text)
    return text


def _json(value: object) -> str:
    return json.dumps(_masked(value), indent=2, ensure_ascii=False) + "\n"


def _masked(value: object) -> object:
    """Returns a copy in which every text is without secrets."""
    if isinstance(value, dict):
        return {key: _masked(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_masked(each) for each in value]
    return without_secrets(value) if isinstance(value, str) else value


def _add(archive: tarfile.TarFile, name: str, text: str) -> None:
    data = text.encode()
    member = tarfile.TarInfo(name)
    member.size, member.mtime = len(data), int(time.time())
    archive.addfile(member, io.BytesIO(data))
