"""Creates an experiment, a command or a service from a checked configuration and a packed context."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from determined.client.session import Session
from determined.errors import BadRequest, ConfigError, DeterminedError, NotFound

CONTEXTS = "/detent/contexts"


class PackedContext(Protocol):
    """What is sent of a context: :class:`determined.context.ContextArchive`.

    ``load`` returns the archive, ``code`` the state of the code of its folder and a warning.
    """

    @property
    def hash(self) -> str: ...

    @property
    def load(self) -> Callable[[], bytes]: ...

    @property
    def code(self) -> Callable[[], tuple[dict[str, Any] | None, str]]: ...


def has_context(session: Session, digest: str) -> bool:
    """Returns True if the master has the context already."""
    try:
        session.request("HEAD", f"{CONTEXTS}/{digest}")
    except NotFound:
        return False
    return True


def send_context(session: Session, digest: str, data: bytes) -> None:
    """Sends the context; harmless if the master has it already."""
    session.request("PUT", f"{CONTEXTS}/{digest}", data, timeout=600)


def continue_experiment(session: Session, experiment_id: int, override: str = "") -> dict[str, Any]:
    """Continues an experiment that has ended, with the settings of ``override`` (YAML) over its configuration."""
    return dict(session.post(f"{EXPERIMENTS}/continue", {"id": experiment_id, "overrideConfig": override}))


EXPERIMENTS, COMMANDS, SHELLS = "/api/v1/experiments", "/api/v1/commands", "/api/v1/shells"


def create(
    session: Session, body: dict[str, Any], context: PackedContext | None = None, *, path: str = EXPERIMENTS
) -> dict[str, Any]:
    """Creates the experiment or command; sends its context only if the master does not have it.

    With an experiment goes the state of the code of its folder, if that is a repository of git. If the master has
    dropped the context between the two requests, it is sent once more.
    """
    if context is None:
        return dict(session.post(path, body))
    body = {**body, "contextHash": context.hash}
    if path == EXPERIMENTS:
        code, warning = context.code()
        if warning:
            import logging

            # Without a handler, as in the command line, Python prints the text.
            logging.getLogger(__name__).warning("%s", warning)
        if code is not None:
            body["code"] = code
    if not has_context(session, context.hash):
        send_context(session, context.hash, context.load())
    try:
        return dict(session.post(path, body))
    except NotFound as error:
        if "send it again" not in error.message:
            raise
    send_context(session, context.hash, context.load())
    return dict(session.post(path, body))


def as_config_error(error: BadRequest, file: str = "") -> DeterminedError:
    """Returns what the master found wrong in a configuration as one ConfigError, or ``error`` if it is about another
    thing. ``file`` is the name of the configuration; one that a program wrote has no place to show."""
    found = error.answer.get("diagnostics") or (error.answer.get("error") or {}).get("diagnostics")
    return ConfigError("\n".join(_line(file, each) for each in found)) if found else error


def _line(file: str, diagnostic: Mapping[str, Any]) -> str:
    parts = (file, diagnostic.get("line"), diagnostic.get("column")) if file else ()
    place = "".join(f"{each}:" for each in parts if each)
    hint = f" (help: {diagnostic['hint']})" if diagnostic.get("hint") else ""
    text = f"{diagnostic.get('severity')}[{diagnostic.get('code')}]: {diagnostic.get('message')}{hint}"
    return f"{place} {text}" if place else text
