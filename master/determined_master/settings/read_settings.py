"""Reads the settings of the master: flags, ``DET_*`` variables, master.yaml, in that order; once."""

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from determined.config.settings_file import SettingsFile
from determined.config.validation_words import in_words
from determined.errors import ConfigError
from determined_master.settings import master_yaml
from determined_master.settings.settings import Settings

ONE_MACHINE = {"preemption": True}
"""Defaults of ``det up``, which file, variables and flags replace: its owner decides what is urgent."""


class SettingsError(Exception):
    """The settings are invalid."""


def default_data(environ: Mapping[str, str]) -> Path:
    base = environ.get("XDG_DATA_HOME") or str(Path(environ.get("HOME", "/")) / ".local" / "share")
    return Path(base) / "detent"


def read_settings(argv: Sequence[str], environ: Mapping[str, str]) -> Settings:
    """Loads the settings. Raises SettingsError with every problem, and the line of those in the file."""
    args = vars(_parser().parse_args(argv))
    values: dict[str, Any] = {"data": default_data(environ)}
    if args.pop("one_machine"):
        values |= ONE_MACHINE
    config = args.pop("config") or environ.get("DET_MASTER_CONFIG")
    file = _from_file(Path(config)) if config else None
    values |= file.values if file else {}
    above = {
        name: environ[f"DET_MASTER_{name.upper()}"]
        for name in Settings.model_fields
        if environ.get(f"DET_MASTER_{name.upper()}")
    }
    above |= {key: value for key, value in args.items() if value is not None}
    problems = list(file.problems) if file else []
    settings = None
    try:
        settings = Settings.model_validate(values | above)
    except ValidationError as error:
        problems += [_problem(each, file, above) for each in error.errors()]
    if settings is None or problems:
        raise SettingsError("; ".join(problems))
    return settings.model_copy(update={"data": settings.data.expanduser().resolve()})


def _problem(error: Any, file: SettingsFile | None, above: Mapping[str, Any]) -> str:  # noqa: ANN401  # a dictionary of pydantic
    name = str(error["loc"][0]) if error["loc"] else ""
    is_of_file = file is not None and name in file.places and name not in above
    where = file.where(name) if file is not None and is_of_file else "master settings"
    return ": ".join(part for part in (where, ".".join(map(str, error["loc"])), in_words(error)) if part)


def _from_file(path: Path) -> SettingsFile:
    try:
        file, warnings = master_yaml.read(path, Settings.model_fields)
    except ConfigError as error:
        raise SettingsError(error.message) from error
    for text in warnings:
        print(f"det-master: warning: {text}", file=sys.stderr)
    return file


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="det-master", description="The master of a Detent cluster.")
    parser.add_argument("--config", help="master.yaml")
    parser.add_argument("--host", help="address to listen on (default 127.0.0.1)")
    parser.add_argument("--port", type=int, help="port to listen on (default 8080; 0 takes a free one)")
    parser.add_argument("--tls-cert", metavar="FILE", help="certificate to serve with by TLS (PEM)")
    parser.add_argument("--tls-key", metavar="FILE", help="private key of the certificate (PEM)")
    parser.add_argument("--data", help="data folder")
    parser.add_argument(
        "--database-url",
        dest="database_url",
        help="postgresql://user:password@host/database (default: SQLite in --data)",
    )
    parser.add_argument("--log-level", dest="log_level")
    parser.add_argument(
        "--checkpoint-root",
        dest="checkpoint_roots",
        metavar="FOLDER",
        action="append",
        help="a folder in which the master may read and delete checkpoints (repeatable)",
    )
    parser.add_argument("--one-machine", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--announce", action="store_const", const=True, help=argparse.SUPPRESS)
    return parser


def environment() -> Mapping[str, str]:
    """Reads the environment; nothing else in the master does."""
    return os.environ
