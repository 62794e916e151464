"""Errors of the master that are more specific than ``determined.errors``."""

import logging

from determined.config import CheckResult
from determined.errors import ApiError, BadRequest, MasterUnreachable, PreconditionFailed
from determined.link.isolation import SharedFailure

logger = logging.getLogger(__name__)


class InvalidConfig(BadRequest):
    """The configuration has errors; each is listed with its line and column."""

    def __init__(self, checked: CheckResult) -> None:
        super().__init__(checked.render())
        self.checked = checked


class OutOfReach(BadRequest):
    """The master neither reads nor deletes this checkpoint's files."""


class SelectionChanged(PreconditionFailed):
    """The selected experiments have changed since the selection; nothing was changed."""

    status = 412


class BodyTooLarge(BadRequest):
    """The request body is larger than this route allows."""

    status = 413


class StorageUnavailable(MasterUnreachable, SharedFailure):
    """The master cannot write: its disk is full, or its database is away. It recovers once that has ended."""

    RETRY_SECONDS = 5
    FAILING = "The master cannot write to its disk. See the master's log."
    AWAY = "The master cannot reach its database and tries again. Nothing that it has confirmed is lost."
    DAMAGED = "The master's database is damaged. See the master's log, which says how to restore it."
    TAKEN = "Another master has taken over this master's database."


def unexpected(error: Exception) -> ApiError:
    """Logs an unexpected error with its traceback and returns one that reveals no internals."""
    logger.error("a request failed", exc_info=error)
    return ApiError("internal error; see the master's log")
