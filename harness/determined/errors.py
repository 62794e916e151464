"""The error tree. The first paragraph of a class's docstring is its default message; server and CLI show one text.

DeterminedError
├── ConfigError              an experiment configuration that cannot be used (exit 4)
├── ContextError             a context folder that cannot be packed (exit 4)
├── StorageError             checkpoint storage failed; names the mount
├── FrameworkMissing         the task's environment lacks what its trial is written for
├── InvalidHP                raised by a trial whose hyperparameters make no sense
└── ApiError                 an answer of the master other than 200
    ├── BadRequest           400
    ├── Unauthenticated      401 (exit 5)
    ├── Forbidden            403 (exit 5)
    ├── NotFound             404 (exit 3)
    ├── Conflict             409 (exit 7)
    ├── PreconditionFailed   400, code 9 (exit 7)
    ├── TooManyRequests      429
    ├── NotImplementedYet    501
    └── MasterUnreachable    no answer (exit 6)
        └── UntrustedCertificate  its certificate is not trusted
"""

from collections.abc import Mapping
from typing import Any, ClassVar


class DeterminedError(Exception):
    """Something went wrong."""

    exit_code: ClassVar[int] = 1

    def __init__(self, message: str | None = None) -> None:
        self.message = message or (type(self).__doc__ or "").split("\n\n")[0].strip()
        super().__init__(self.message)


class ConfigError(DeterminedError):
    """The experiment configuration cannot be used."""

    exit_code = 4


class ContextError(DeterminedError):
    """The context folder cannot be packed."""

    exit_code = 4


class StorageError(DeterminedError):
    """Checkpoint storage failed."""


class FrameworkMissing(DeterminedError):
    """The task's environment lacks a framework; made with its name."""

    def __init__(self, name: str) -> None:
        extra = "pytorch" if name == "torch" else name
        super().__init__(
            f"{name} is not installed in this environment: install it (pip install 'detent-cluster[{extra}]'), or "
            "select an environment.image that has it"
        )


class InvalidHP(DeterminedError):
    """These hyperparameters make no sense together."""


class ApiError(DeterminedError):
    """The master answered with an error.

    ``answer`` is the decoded body, empty where there was none; a bad configuration has ``diagnostics`` there.
    ``status`` is the HTTP status: the answer's, else the usual one of the class.
    """

    status: int = 500
    code: ClassVar[int] = 13  # the gRPC number that the wire carries
    reason: ClassVar[str] = "Internal"

    def __init__(
        self,
        message: str | None = None,
        *,
        answer: Mapping[str, Any] | None = None,
        status: int | None = None,
    ) -> None:
        super().__init__(message)
        self.answer: Mapping[str, Any] = answer or {}
        if status is not None:
            self.status = status


class BadRequest(ApiError):
    """The request cannot be understood."""

    status, code, reason = 400, 3, "InvalidArgument"


class Unauthenticated(ApiError):
    """Not logged in, or the login has expired."""

    status, code, reason = 401, 16, "Unauthenticated"
    exit_code = 5


class Forbidden(ApiError):
    """Not allowed."""

    status, code, reason = 403, 7, "PermissionDenied"
    exit_code = 5


class NotFound(ApiError):
    """No such thing."""

    status, code, reason = 404, 5, "NotFound"
    exit_code = 3


class Conflict(ApiError):
    """It exists already, or it has moved on."""

    status, code, reason = 409, 6, "AlreadyExists"
    exit_code = 7


class PreconditionFailed(ApiError):
    """Not possible in its present state."""

    status, code, reason = 400, 9, "FailedPrecondition"
    exit_code = 7


class TooManyRequests(ApiError):
    """Too many attempts in a short time; wait a minute."""

    status, code, reason = 429, 8, "ResourceExhausted"


class NotImplementedYet(ApiError):
    """This master does not offer that operation yet."""

    status, code, reason = 501, 12, "Unimplemented"


class MasterUnreachable(ApiError):
    """The master does not answer.

    ``is_unsent`` is true if the request did not reach it, so that repeating it is safe. ``is_refused`` is true if no
    program listens at the address.
    """

    status, code, reason = 503, 14, "Unavailable"
    exit_code = 6
    is_unsent: bool = False
    is_refused: bool = False


class UntrustedCertificate(MasterUnreachable):
    """The master's certificate is not trusted.

    Repeating the request is useless until somebody has changed the certificate or what is trusted. ``master`` is the
    URL of a master whose certificate a user could confirm, otherwise empty.
    """

    master: str = ""


API_ERRORS: tuple[type[ApiError], ...] = (
    BadRequest,
    Unauthenticated,
    Forbidden,
    NotFound,
    Conflict,
    PreconditionFailed,
    TooManyRequests,
    NotImplementedYet,
    MasterUnreachable,
)


def from_answer(
    status: int, code: int | None, message: str | None, answer: Mapping[str, Any] | None = None
) -> ApiError:
    """Returns the error for an answer's gRPC ``code``, else for its HTTP ``status``."""
    exact = (kind for kind in API_ERRORS if kind.code == code and kind.status == status)
    kind = next(exact, None) or next((kind for kind in API_ERRORS if kind.status == status), ApiError)
    return kind(message or f"the master answered {status}", answer=answer, status=status)
