"""Command table of ``det user``."""

from determined_cli.command import Command, argument, listing, selecting

NOUNS_WITHOUT_VERBS = ()

_RUN = "determined_cli.user.commands"


def yes_or_no(text: str) -> bool:
    """Parses ``true`` or ``false``. Raises ValueError."""
    if text.lower() not in ("true", "false"):
        raise ValueError(text)
    return text.lower() == "true"


def system_id(text: str) -> int:
    """Parses a uid or gid. Raises ValueError."""
    number = int(text)
    if not 0 <= number < 2**32 - 1:
        raise ValueError(text)
    return number


VERBS = (
    Command(
        "login",
        "log in and store the session",
        f"{_RUN}:login",
        (argument("username", nargs="?", help="user to log in as (default: determined)"),),
        examples=("det user login admin", "det -m http://host:8080 user login"),
    ),
    Command("logout", "log out and delete the stored session", f"{_RUN}:logout"),
    Command("whoami", "print the current user", f"{_RUN}:whoami"),
    Command(
        "list",
        "list users",
        f"{_RUN}:list_users",
        (argument("-a", "--all", action="store_true", help="include inactive users"), selecting, listing),
        aliases=("ls",),
    ),
    Command(
        "create",
        "create a user (asks for the password)",
        f"{_RUN}:create",
        (
            argument("username"),
            argument("--admin", action="store_true", help="make the user an admin"),
            argument("--password", help="password, for scripts; other users of this machine can see it"),
        ),
    ),
    Command(
        "edit",
        "change a user's names, role or whether they can log in",
        f"{_RUN}:edit",
        (
            argument("target_user", metavar="USERNAME"),
            argument("--display-name", metavar="NAME", help="name that is displayed; an empty text removes it"),
            argument("--username", metavar="NAME", help="new name to log in with (admins only)"),
            argument("--admin", type=yes_or_no, metavar="true|false", help="make the user an admin (admins only)"),
            argument("--activate", dest="active", action="store_true", default=None, help="let the user log in"),
            argument(
                "--deactivate",
                dest="active",
                action="store_false",
                default=None,
                help="prevent the user from logging in",
            ),
        ),
        examples=('det user edit ann --display-name "Ann Lee"', "det user edit ann --admin true"),
    ),
    Command(
        "rename",
        "change the name that a user logs in with (admins only)",
        f"{_RUN}:rename",
        (argument("target_user", metavar="USERNAME"), argument("new_username", metavar="NEW_USERNAME")),
    ),
    Command(
        "activate",
        "let a user log in again (admins only)",
        f"{_RUN}:activate",
        (argument("target_user", metavar="USERNAME"),),
    ),
    Command(
        "deactivate",
        "keep a user from logging in (admins only)",
        f"{_RUN}:deactivate",
        (argument("target_user", metavar="USERNAME"),),
    ),
    Command(
        "describe",
        "show a user, and as whom agents run the user's tasks",
        f"{_RUN}:describe",
        (argument("target_user", metavar="USERNAME"), listing),
    ),
    Command(
        "link-with-agent-user",
        "choose the machines' user that runs a user's tasks",
        f"{_RUN}:link_with_agent_user",
        (
            argument("target_user", metavar="USERNAME"),
            argument("--agent-uid", type=system_id, required=True, metavar="UID", help="user ID on the machines"),
            argument("--agent-user", required=True, metavar="NAME", help="name of this user on the machines"),
            argument("--agent-gid", type=system_id, required=True, metavar="GID", help="group ID on the machines"),
            argument("--agent-group", required=True, metavar="NAME", help="name of this group on the machines"),
        ),
        examples=(
            "det user link-with-agent-user ann --agent-uid 1001 --agent-user ann \\\n"
            "    --agent-gid 100 --agent-group users",
        ),
    ),
    Command(
        "unlink-agent-user",
        "remove the link with a user of the machines",
        f"{_RUN}:unlink_agent_user",
        (argument("target_user", metavar="USERNAME"),),
    ),
    Command(
        "change-password",
        "change your password, or as an admin another user's",
        f"{_RUN}:change_password",
        (
            argument("target_user", nargs="?"),
            argument("--password", help="password, for scripts; other users of this machine can see it"),
        ),
    ),
)
