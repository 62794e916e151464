"""Creates an experiment for the SDK: configuration text, packed context, and the master's diagnostics as one error."""

import json
import logging
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from determined.client import submissions
from determined.client.session import Session
from determined.errors import BadRequest, ConfigError, ContextError, NotImplementedYet

if TYPE_CHECKING:
    from determined.context import ContextArchive

logger = logging.getLogger(__name__)


def create(
    session: Session,
    config: str | os.PathLike[str] | Mapping[str, object],
    model_dir: str | os.PathLike[str] | None,
    includes: Sequence[str | os.PathLike[str]],
    parent_id: int | None,
    project_id: int | None,
    template: str | None,
    *,
    activate: bool,
) -> dict[str, Any]:
    """Creates an experiment and returns it as the master shows it. Raises ConfigError or ContextError."""
    if template is not None:
        raise NotImplementedYet("templates are not supported yet; leave out template")
    if (model_dir is None) == (parent_id is None):
        raise ContextError("give either model_dir, the folder with the code, or parent_id, whose code is used")
    name, text = _text(config)
    body: dict[str, Any] = {"config": text, "configName": name, "activate": activate}
    if parent_id is not None:
        body["parentId"] = parent_id
    if project_id is not None:
        body["projectId"] = project_id
    packed = None if model_dir is None else _packed(model_dir, includes)
    try:
        return dict(submissions.create(session, body, packed)["experiment"])
    except BadRequest as error:
        raise submissions.as_config_error(error, name) from None


def _text(config: str | os.PathLike[str] | Mapping[str, object]) -> tuple[str, str]:
    """Returns the name and the text of a configuration; JSON is YAML."""
    if isinstance(config, Mapping):
        return "config", json.dumps(config, indent=2)
    path = Path(config)
    try:
        return os.fspath(config), path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ConfigError(f"{path}: {(error.strerror or str(error)).lower()}") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8: {error}") from None


def _packed(model_dir: str | os.PathLike[str], includes: Sequence[str | os.PathLike[str]]) -> "ContextArchive":
    try:
        from determined.context import KnownFolders, pack
    except ImportError as error:  # a task's own environment may lack them
        raise ContextError(
            f"packing a context needs the package {error.name}: pip install {error.name}, or use parent_id"
        ) from None
    packed = pack(Path(model_dir), [Path(each) for each in includes], known=KnownFolders.of_user())
    for note in packed.notes:
        logger.warning("%s", note)
    return packed
