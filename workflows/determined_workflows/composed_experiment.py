"""An experiment that a workflow composes: its configuration with what ``--config`` changes, and its creation."""

from collections.abc import Mapping, Sequence
from typing import Any

from determined.client import submissions
from determined.client.session import Session
from determined.context import ContextArchive
from determined.errors import BadRequest, ConfigError

_COMPOSED = ("hyperparameters", "entrypoint", "searcher.name", "searcher.trials")
_STORAGE = {"checkpoint_storage": {"type": "shared_fs", "host_path": "/"}}  # the master fills in its own


def refuse_composed(changes: Sequence[str], *, origin: str, keys: Sequence[str] = _COMPOSED) -> None:
    """Raises ConfigError if one of ``changes`` (``key.path=value``) is of what the workflow composes: of ``keys``.

    ``origin`` says where these keys come from and what to change instead.

    >>> refuse_composed(["max_restarts=3"], origin="the grid; change params.yaml instead")
    """
    for change in changes:
        key = change.partition("=")[0].strip()
        if any(key == each or key.startswith(f"{each}.") for each in keys):
            raise ConfigError(f'--config "{change}": {key} follows from {origin}')


def completed(
    document: Mapping[str, Any], changes: Sequence[str], *, name: str, title: str, is_checked: bool = True
) -> tuple[str, str]:
    """Returns the configuration as YAML with ``changes`` applied, and its warnings as lines, or "".

    ``name`` is the file that diagnostics name; ``title`` names the experiment in errors. Without ``is_checked`` a
    configuration without changes is left to the master's check: loading the rules takes longer than asking it. Raises
    ConfigError if the configuration is wrong.
    """
    import yaml  # `det run` without changes does not pay for its import

    text = yaml.safe_dump(dict(document), sort_keys=False, allow_unicode=True)
    if not is_checked and not changes:
        return text, ""
    from determined.config import check
    from determined.config.overrides import override

    if changes:
        text = override(text, changes).text
    checked = check(text, name=name, defaults=[_STORAGE], has_containers=True)
    if not checked.ok:
        raise ConfigError(f"the experiment of {title} is invalid:\n{checked.render()}")
    return text, checked.render() if checked.diagnostics else ""


def create(session: Session, config: str, packed: ContextArchive, *, name: str, is_paused: bool = False) -> int:
    """Creates the experiment of a configuration, which is called ``name``, and returns its id.

    Raises ConfigError with what the master finds wrong.
    """
    return int(submit(session, config, packed, name=name, is_paused=is_paused)["experiment"]["id"])


def submit(
    session: Session, config: str, packed: ContextArchive, *, name: str, is_paused: bool = False
) -> dict[str, Any]:
    """As :func:`create`; returns the master's answer: the experiment, and warnings about it."""
    body = {"config": config, "configName": name, "activate": not is_paused}
    try:
        return submissions.create(session, body, packed)
    except BadRequest as error:
        raise submissions.as_config_error(error) from None
