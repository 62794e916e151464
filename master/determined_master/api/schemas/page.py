"""Wire models of sign-in, sessions and the change feed."""

from typing import Literal

from determined_master.api.schemas.base import Time, Wire
from determined_master.api.schemas.users import User

Kind = Literal["experiment", "metrics", "logs", "cluster", "events", "columns", "deleted"]


class Hello(Wire):
    """The first event of a stream. Where it is not resumed, all that was known before may be stale."""

    build: str
    version: str
    now: Time
    resumed: bool


class Change(Wire):
    """``id``: of an experiment, for ``logs`` of a task; empty where the kind has but one thing."""

    kind: Kind
    id: str


class Changes(Wire):
    """Event ``change``: each thing once."""

    changes: list[Change]


class Bye(Wire):
    """The last event of a stream that the master ends."""

    reason: Literal["shutdown", "signed-out"]


class SignInLinkBody(Wire):
    """``username`` only beside the data folder's own token; a user gets a link for themselves."""

    username: str | None = None


class SignInLink(Wire):
    """A path with its fragment: what stands behind ``#`` is sent to no server and written into no log."""

    path: str
    expires_at: Time


class SignInBody(Wire):
    """``token`` of a link, or a name with its password as people type it."""

    token: str | None = None
    username: str | None = None
    password: str | None = None


class SignInAnswer(Wire):
    user: User


class PageSession(Wire):
    """``build``: of the page that this master serves, so that an older one knows it; empty where none is built."""

    user: User
    version: str
    build: str
    cluster_name: str
    now: Time
