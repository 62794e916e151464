"""Sign-in and sign-out; creating and changing users; the first users of a new cluster."""

import secrets
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from determined.errors import BadRequest, Conflict, Forbidden, NotFound, PreconditionFailed, Unauthenticated
from determined_master import notifications
from determined_master.auth.passwords import Passwords, client_hash, weakness
from determined_master.auth.principal import Principal
from determined_master.auth.secrets import token_hash
from determined_master.clock import Clock
from determined_master.db.models import UserRow
from determined_master.db.session import Database, ReadSession, WriteSession, after_commit, notify
from determined_master.events import repository as events
from determined_master.users import agent_user, repository

SESSION_DAYS = 7
LINK_MINUTES = 10


class Users:
    """User management. Argon2 runs outside of sessions: no transaction waits for a hash."""

    def __init__(self, database: Database, passwords: Passwords, forget: Callable[[], None], clock: Clock) -> None:
        """``forget`` is called when a sign-in may have ended or changed: cached principals are dropped."""
        self._database = database
        self._passwords = passwords
        self._forget = forget
        self._clock = clock
        self._decoy = ""

    async def login(self, username: str, password: str, *, is_hashed: bool) -> tuple[str, UserRow]:
        """Returns a new session's token and its user. Raises Unauthenticated for a wrong name or password alike."""
        hashed = password if is_hashed else client_hash(password)
        async with self._database.read() as session:
            user = await repository.find_by_name(session, username)
        # An unknown name takes as long as a wrong password, which prevents timing attacks on names.
        stored = user.password_hash if user and user.password_hash else await self._decoy_hash()
        matches = await self._passwords.verify(stored, hashed)
        if user is None or not matches:
            raise Unauthenticated("wrong username or password")
        if not user.active:
            raise Forbidden("user is not active")
        async with self._database.write() as session:
            now = await repository.get(session, user.id)
            # A change of the password meanwhile has ended the sessions that there were.
            if now.password_hash != user.password_hash or not now.active:
                raise Unauthenticated("wrong username or password")
            return await self._open_session(session, user), user

    async def make_link(self, username: str, actor: str) -> tuple[str, datetime]:
        """Returns the token of a one-time sign-in link, and its expiry."""
        user = await self.get_by_name(username)
        if not user.active:
            raise Forbidden("user is not active")
        token = secrets.token_urlsafe(32)
        now = self._clock.now()
        expires_at = now + timedelta(minutes=LINK_MINUTES)
        async with self._database.write() as session:
            await repository.drop_links_before(session, now)
            await repository.add_link(session, user.id, token_hash(token), now, expires_at)
            await events.record(
                session, self._clock, actor=actor, kind="link_made", target_type="user", target_id=user.id
            )
        return token, expires_at

    async def login_by_link(self, token: str) -> tuple[str, UserRow]:
        """Redeems a link. Raises Unauthenticated for used, expired and unknown links alike."""
        async with self._database.write() as session:
            user_id = await repository.use_link(session, token_hash(token), self._clock.now())
            if user_id is None:
                raise Unauthenticated(
                    "this link was used before or has expired; create a new one with `det master open`"
                )
            user = await repository.get(session, user_id)
            if not user.active:
                raise Forbidden("user is not active")
            return await self._open_session(session, user), user

    async def _open_session(self, session: WriteSession, user: UserRow) -> str:
        token = secrets.token_urlsafe(32)
        now = self._clock.now()
        await repository.open_session(session, user.id, token_hash(token), now, now + timedelta(days=SESSION_DAYS))
        await repository.change(session, user.id, last_auth_at=now)
        await events.record(
            session, self._clock, actor=user.username, kind="logged_in", target_type="user", target_id=user.id
        )
        return token

    async def logout(self, principal: Principal) -> None:
        if principal.session_id is None:
            self._forget()
            return
        async with self._database.write() as session:
            await repository.close_session(session, principal.session_id)
            self._forget_after(session)

    def _forget_after(self, session: WriteSession) -> None:
        """Drops cached principals before the notification, so that subscribers read the current state."""
        after_commit(session, self._forget)
        notify(session, notifications.SESSIONS)

    async def create(
        self,
        actor: Principal,
        username: str,
        *,
        admin: bool,
        display_name: str,
        password: str,
        is_hashed: bool,
        active: bool = True,
        agent_user_group: dict[str, Any] | None = None,
    ) -> UserRow:
        _check_username(username)
        if password and not is_hashed:
            _check_strength(password)
        link = agent_user.checked(agent_user_group)
        password_hash = await self._hash(password, is_hashed=is_hashed)
        async with self._database.write() as session:
            if await repository.find_by_name(session, username):
                raise Conflict(f"user {username!r} already exists")
            await _check_display_name(session, display_name, None)
            user = await repository.add(
                session,
                username=username,
                admin=admin,
                active=active,
                agent_user_group=link,
                display_name=display_name,
                password_hash=password_hash,
                modified_at=self._clock.now(),
            )
            await events.record(
                session, self._clock, actor=actor.username, kind="created", target_type="user", target_id=user.id
            )
        return user

    async def change(self, actor: Principal, user_id: int, changes: dict[str, Any]) -> UserRow:
        """Changes a user. ``changes``: absent keys stay. Users may change their own display name and password; admins
        all."""
        own = actor.user_id == user_id
        if not actor.admin and (not own or set(changes) - {"display_name", "password", "is_hashed"}):
            raise Forbidden("only an admin may change this; you may change your own display name and password")
        values = {k: v for k, v in changes.items() if k not in ("password", "is_hashed") and v is not None}
        if "username" in values:
            _check_username(values["username"])
        if "agent_user_group" in values:
            values["agent_user_group"] = agent_user.checked(values["agent_user_group"])
        password = changes.get("password")
        if password is not None:
            if not changes.get("is_hashed"):
                _check_strength(password)
            values["password_hash"] = await self._hash(password, is_hashed=bool(changes.get("is_hashed")))
        async with self._database.write() as session:
            user = await repository.get(session, user_id)
            namesake = await repository.find_by_name(session, values.get("username", user.username))
            if namesake is not None and namesake.id != user_id:
                raise Conflict(f"user {namesake.username!r} already exists")
            await _check_display_name(session, values.get("display_name", ""), user_id)
            if user.admin and user.active and (values.get("admin") is False or values.get("active") is False):
                await _check_other_admin(session, user_id)
            await repository.change(session, user_id, modified_at=self._clock.now(), **values)
            if password is not None or changes.get("active") is False:
                await repository.close_sessions_of(session, user_id, but=actor.session_id if own else None)
            await events.record(
                session,
                self._clock,
                actor=actor.username,
                kind="changed",
                target_type="user",
                target_id=user_id,
                payload={"fields": sorted(k for k in changes if k != "is_hashed")},
            )
            await session.refresh(user)
            self._forget_after(session)
        return user

    async def get_by_name(self, username: str) -> UserRow:
        async with self._database.read() as session:
            user = await repository.find_by_name(session, username)
        if user is None:
            raise NotFound(f"user {username!r} not found")
        return user

    async def ensure_first(self, password: str) -> None:
        """Creates ``admin`` and ``determined`` with this password if there is no user yet, and the default project."""
        async with self._database.read() as session:
            if await repository.all_users(session):
                return
        password_hash = await self._hash(password, is_hashed=False)
        now = self._clock.now()
        async with self._database.write() as session:
            first = await repository.add(
                session, username="admin", admin=True, password_hash=password_hash, modified_at=now
            )
            await repository.add(
                session, username="determined", admin=False, password_hash=password_hash, modified_at=now
            )
            await repository.add_first_places(session, first.id)

    async def _hash(self, password: str, *, is_hashed: bool) -> str:
        return await self._passwords.hash(password if is_hashed else client_hash(password))

    async def _decoy_hash(self) -> str:
        if not self._decoy:
            self._decoy = await self._passwords.hash(secrets.token_hex(16))
        return self._decoy


async def _check_display_name(session: ReadSession, display_name: str, user_id: int | None) -> None:
    """Raises Conflict for a name of another user."""
    namesake = await repository.find_namesake(session, display_name, user_id) if display_name.strip() else None
    if namesake is not None:
        raise Conflict(f"{display_name!r} is the name of another user, {namesake.username}")


def _check_username(username: str) -> None:
    if not username or len(username) > 255 or any(c.isspace() or not c.isprintable() for c in username):
        raise BadRequest("a username must have 1 to 255 printable characters and no spaces")


def _check_strength(password: str) -> None:
    problem = weakness(password)
    if problem:
        raise BadRequest(problem)


async def _check_other_admin(session: ReadSession, user_id: int) -> None:
    """Raises PreconditionFailed if no other user could manage the cluster."""
    if not any(each.admin and each.active for each in await repository.all_users(session) if each.id != user_id):
        raise PreconditionFailed("this is the last active admin; make another user an admin first")
