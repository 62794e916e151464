"""Commands of ``det user``."""

import os
from argparse import Namespace
from collections.abc import Mapping
from typing import Any

from determined.client import auth_store, sign_in, users
from determined.errors import ApiError, BadRequest, Forbidden
from determined_cli import connection
from determined_cli.output import render
from determined_cli.output.row_selection import select
from determined_cli.terminal.messages import say


def login(args: Namespace) -> None:
    """Signs in; the password comes from ``DET_PASS`` or the terminal."""
    url = connection.master_url(args.options)
    user = args.username or args.options.user or os.environ.get("DET_USER") or sign_in.GUEST
    password = os.environ.get("DET_PASS")
    if password is None:
        password = connection.ask_password(user)
    connection.log_in(url, user, password, keep=True)
    say(f"logged in to {url} as {user}")


def logout(args: Namespace) -> None:
    """Signs out. The stored token is removed even if the master is unreachable or does not know it any more."""
    url = connection.master_url(args.options)
    store = auth_store.read()
    user = args.options.user or auth_store.active_user(store, url)
    token = auth_store.token(store, url, user) if user else None
    if user is None or token is None:
        say(f"not logged in to {url}")
        return
    auth_store.forget(url, user)
    try:
        users.log_out(connection.open_session(url, token))
    except ApiError as error:
        say(f"logged out on this machine, but the master could not be informed: {error.message}")
        return
    say(f"logged out {user} from {url}")


def whoami(args: Namespace) -> None:
    """Prints the signed-in user. It asks the master, so an expired sign-in is noticed."""
    me = users.me(connection.connect(args.options))
    print(f"You are logged in as user '{me['username']}'")


COLUMNS = (
    ("Username", "username"),
    ("Display Name", "display_name"),
    ("Active", "active"),
    ("Admin", "admin"),
    ("Remote", "remote"),
    ("Agent UID", "agent_uid"),
    ("Agent GID", "agent_gid"),
    ("Agent User", "agent_user"),
    ("Agent Group", "agent_group"),
)


def list_users(args: Namespace) -> None:
    """Lists users by name."""
    found = users.list_all(connection.connect(args.options), inactive=args.all)
    rows = sorted(map(_row, found), key=lambda each: str(each["username"]))
    render.show(args.format, *select(args, COLUMNS, rows))


def describe(args: Namespace) -> None:
    """Shows one user."""
    row = _row(users.by_name(connection.connect(args.options), args.target_user))
    if args.format == "table":
        render.show_fields(COLUMNS, row)
    else:
        render.show(args.format, COLUMNS, [row])


def _row(user: Mapping[str, Any]) -> dict[str, Any]:
    row: dict[str, Any] = render.snake(dict(user))
    link: dict[str, Any] = row.pop("agent_user_group", None) or {}
    return row | link


def create(args: Namespace) -> None:
    """Creates a user."""
    session = connection.connect(args.options)
    me = users.me(session)
    if not me.get("admin"):  # before anybody types a password twice
        raise Forbidden(f"only admins create users, and {me['username']} is none; `det user list` shows who is")
    password = _new_password(args.username, args.password)
    users.create(session, args.username, sign_in.hashed(password), admin=args.admin)
    say(f"created user {args.username}")


def edit(args: Namespace) -> None:
    """Changes a user. Raises BadRequest if no change is given."""
    given = {"displayName": args.display_name, "username": args.username, "admin": args.admin, "active": args.active}
    changes = {key: value for key, value in given.items() if value is not None}
    if not changes:
        raise BadRequest("nothing to change: give --display-name, --username, --admin, --activate or --deactivate")
    _change(args, changes)
    say(f"changed user {args.target_user}")


def rename(args: Namespace) -> None:
    """Changes the name that a user logs in with."""
    _change(args, {"username": args.new_username})
    say(f"renamed user {args.target_user} to {args.new_username}")


def activate(args: Namespace) -> None:
    """Activates a user, who can log in again."""
    _change(args, {"active": True})
    say(f"activated user {args.target_user}")


def deactivate(args: Namespace) -> None:
    """Deactivates a user, who can no longer log in."""
    _change(args, {"active": False})
    say(f"deactivated user {args.target_user}")


def link_with_agent_user(args: Namespace) -> None:
    """Sets the user and group of the agents' machines as which a user's tasks run."""
    link = {
        "agentUid": args.agent_uid,
        "agentUser": args.agent_user,
        "agentGid": args.agent_gid,
        "agentGroup": args.agent_group,
    }
    _change(args, {"agentUserGroup": link})
    say(f"tasks of {args.target_user} run as {args.agent_user} (uid {args.agent_uid}, gid {args.agent_gid})")


def unlink_agent_user(args: Namespace) -> None:
    """Removes the user and group of a user's tasks."""
    _change(args, {"agentUserGroup": {}})
    say(f"{args.target_user} is linked with no user of the agents' machines")


def _change(args: Namespace, changes: dict[str, object]) -> None:
    session = connection.connect(args.options)
    users.change(session, int(users.by_name(session, args.target_user)["id"]), changes)


def change_password(args: Namespace) -> None:
    """Changes the user's own password, or as an admin another user's; signs in again after a change of the own one."""
    session = connection.connect(args.options)
    me = users.me(session)
    target = users.by_name(session, args.target_user) if args.target_user else me
    password = _new_password(target["username"], args.password)
    users.set_password(session, int(target["id"]), sign_in.hashed(password))
    say(f"changed the password of {target['username']}")
    url = connection.master_url(args.options)
    if target["id"] == me["id"] and auth_store.token(auth_store.read(), url, me["username"]):
        connection.log_in(url, me["username"], password, keep=True)


def _new_password(user: str, given: str | None) -> str:
    if given is not None:
        password = given
    else:
        password = connection.ask_password(user, "New password for {}: ")
        if connection.ask_password(user, "Repeat the new password: ") != password:
            raise BadRequest("the passwords do not match")
    # The master receives only a hash, so only the client can check this rule.
    if len(password) < 8 or password in (password.lower(), password.upper()) or not any(map(str.isdigit, password)):
        raise BadRequest(
            "a password needs 8 characters or more, with an upper-case letter, a lower-case letter and a digit"
        )
    return password
