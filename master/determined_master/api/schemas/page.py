"""Wire models of sign-in, sessions and the change feed."""

from typing import Literal

from determined_master.api.schemas.base import Time, Wire
from determined_master.api.schemas.users import User

Kind = Literal["experiment", "metrics", "logs", "cluster", "events", "columns", "deleted"]


class Hello(Wire):
    """First event of a stream. If the stream was not resumed, all earlier data may be stale."""

    build: str
    version: str
    now: Time
    resumed: bool


class Change(Wire):
    """``id``: of an experiment, for ``logs`` of a task; empty for kinds with a single object."""

    kind: Kind
    id: str


class Changes(Wire):
    """Event ``change``: changed objects without duplicates."""

    changes: list[Change]


class Bye(Wire):
    """The last event of a stream that the master ends."""

    reason: Literal["shutdown", "signed-out"]


class SignInLinkBody(Wire):
    """``username``: only with the data folder's own token; users create links for themselves."""

    username: str | None = None


class SignInLink(Wire):
    """Path with a fragment: browsers send the fragment to no server, so no log contains it."""

    path: str
    expires_at: Time


class SignInBody(Wire):
    """``token`` of a link, or a name with its plain password."""

    token: str | None = None
    username: str | None = None
    password: str | None = None


class SignInAnswer(Wire):
    """``session_id``: what the page sends in ``X-Detent-Session`` from then on."""

    user: User
    session_id: str


class PageSession(Wire):
    """``build``: of the page that this master serves, by which older pages notice it; empty without a page."""

    user: User
    version: str
    build: str
    cluster_name: str
    payers: dict[str, str]
    """By pool the account that is charged for its work; pools whose work is charged to nobody are missing."""
    now: Time
