"""Maps tokens to principals: users by a stored hash, tasks by a signature, agents by the join token."""

import hmac
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from determined.errors import ApiError, Forbidden, Unauthenticated
from determined_master.auth import repository
from determined_master.auth.principal import Principal
from determined_master.auth.secrets import TASK_TOKEN_PREFIX, Secrets, token_hash
from determined_master.clock import Clock
from determined_master.db.session import Database
from determined_master.errors import StorageUnavailable

SESSION_HEADER = "x-detent-session"
"""Which sign-in a page means, by its id: another page of the same host, on another port, can replace the page's cookie
by that of somebody else, and cannot read or write the page's storage, where the id is."""
MAX_SIGN_INS = 8
"""Sign-in cookies of one request that are looked at."""
TASK_HEADER = "grpc-metadata-x-allocation-token"
COOKIE = "auth"
"""Cookie name of the older product. Browsers share cookies across ports of a host, so the page's is also named after
its cluster."""


@dataclass(frozen=True)
class _Known:
    principal: Principal
    expires_at: datetime | None


class Authenticator:
    """Caches principals by token; code that ends a session, a user or an allocation invalidates them here."""

    def __init__(self, database: Database, secrets: Secrets, clock: Clock) -> None:
        self._database = database
        self._secrets = secrets
        self._clock = clock
        self.cookie = COOKIE
        """Name of the page's cookie, once the cluster id is known."""
        self._sessions: dict[str, _Known] = {}
        self._forgotten = 0
        self._ended = 0
        self._tasks: dict[str, tuple[str, Principal]] = {}
        """Allocation id → its token and its principal."""
        self._by_token: dict[str, Principal] = {}

    def forget_sessions(self) -> None:
        self._forgotten += 1
        self._sessions.clear()

    def forget_allocation(self, allocation_id: str) -> None:
        self._ended += 1
        token, _ = self._tasks.pop(allocation_id, ("", None))
        self._by_token.pop(token, None)

    def is_agent(self, token: str | None) -> bool:
        return token is not None and hmac.compare_digest(token.encode(), self._secrets.join_token.encode())

    def is_operator(self, token: str | None) -> bool:
        """Returns True for the token of the data folder's owner."""
        return token is not None and hmac.compare_digest(token.encode(), self._secrets.operator_token.encode())

    async def principal(self, headers: Mapping[str, str], cookies: Mapping[str, str]) -> Principal:
        """Returns the principal of a request with these headers (names in lower case) and cookies. Raises
        Unauthenticated. A user's token wins over a task's if both are sent."""
        token = bearer(headers.get("authorization"))
        if token is None and (self.cookie in cookies or COOKIE in cookies):
            return await self._of_cookies(headers, cookies)
        task_token = bearer(headers.get(TASK_HEADER))
        if token and not token.startswith(TASK_TOKEN_PREFIX + "."):
            return await self._user(token)
        task_token = task_token or token
        if task_token:
            return await self.task(task_token)
        raise Unauthenticated("not logged in: the request has no token; run det user login")

    async def _of_cookies(self, headers: Mapping[str, str], cookies: Mapping[str, str]) -> Principal:
        """Returns the principal of the sign-in that the page means; of the only one, if it does not say. Raises
        Unauthenticated."""
        given = sign_ins(headers.get("cookie", ""), self.cookie) or sign_ins(headers.get("cookie", ""), COOKIE)
        tokens = given or {cookies.get(self.cookie) or cookies.get(COOKIE, "")} - {""}
        meant = headers.get(SESSION_HEADER)
        if len(tokens) > (1 if meant is None else MAX_SIGN_INS):
            raise Unauthenticated("the browser has sent several sign-ins; sign in again")
        for token in tokens:
            is_task = token.startswith(TASK_TOKEN_PREFIX + ".")
            try:
                principal = await (self.task(token) if is_task else self._user(token))
            except (Unauthenticated, Forbidden):
                if len(tokens) == 1:
                    raise
                continue
            if meant is None or meant == str(principal.session_id):
                return principal
        if not tokens:
            raise Unauthenticated("the cookie of the sign-in is empty; sign in")
        raise Unauthenticated("this browser is signed in by another page than this one; sign in again")

    def known_task(self, token: str) -> Principal | None:
        """Returns the principal from the cache only, without a query. For hot routes."""
        return self._by_token.get(token)

    async def task(self, token: str) -> Principal:
        allocation_id = self._secrets.allocation_of(token)
        if allocation_id is None:
            raise Unauthenticated("this task token belongs to another cluster")
        if allocation_id in self._tasks:
            return self._tasks[allocation_id][1]
        keep = self.task_keeper()
        async with self._database.read() as session:
            row = await repository.token_holder(session, allocation_id)
            if row is None or row.state.is_terminal:
                raise Unauthenticated(f"fenced: allocation {allocation_id} has ended")
        principal = Principal(
            row.user_id, row.username, row.is_admin, allocation_id, row.task_id, row.scope, row.trial_id
        )
        keep(token, principal)
        return principal

    def task_keeper(self) -> Callable[[str, Principal], None]:
        """Returns a function that keeps the principal of a task's token, if the caller reads it after this call. If an
        allocation ends during the query it keeps nothing."""
        ended = self._ended

        def keep(token: str, principal: Principal) -> None:
            if ended == self._ended and principal.allocation_id is not None:
                self._tasks[principal.allocation_id] = (token, principal)
                self._by_token[token] = principal

        return keep

    async def _user(self, token: str) -> Principal:
        digest = token_hash(token)
        known = self._sessions.get(digest)
        now = self._clock.now()
        if known is None:
            forgotten = self._forgotten
            async with self._database.read() as session:
                found = await repository.find_session(session, digest)
            if found is None:
                raise Unauthenticated("the login is unknown or has ended; run det user login")
            session_row, user = found
            if not user.active:
                raise Forbidden("user is not active")
            principal = Principal(user.id, user.username, user.admin, session_id=session_row.id)
            known = _Known(principal, session_row.expires_at)
            # A sign-in that ended during the query must not be cached.
            if forgotten == self._forgotten:
                self._sessions[digest] = known
        if known.expires_at is not None and known.expires_at <= now:
            self._sessions.pop(digest, None)
            raise Unauthenticated("the login has expired; run det user login")
        return known.principal


async def lasts(look: Awaitable[bool]) -> bool:
    """Returns whether a sign-in lasts, as ``look`` says or by its error. One that cannot be looked at lasts."""
    try:
        return await look
    except StorageUnavailable:
        return True
    except ApiError:
        return False


def sign_ins(cookie_header: str, name: str) -> set[str]:
    """Returns the different values that cookies of one name have: a browser sends several if their paths differ.

    >>> sorted(sign_ins("auth=a; other=b; auth=c", "auth"))
    ['a', 'c']
    """
    pairs = (pair.partition("=") for pair in cookie_header.split(";"))
    return {value.strip() for each, _, value in pairs if each.strip() == name and value.strip()}


def bearer(header: str | None) -> str | None:
    if not header:
        return None
    kind, _, token = header.partition(" ")
    return token.strip() if kind.lower() == "bearer" and token.strip() else None
