"""Command table of ``det user``."""

from determined_cli.command import Command, argument, listing

BARE = ()

_RUN = "determined_cli.user.commands"

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
        (argument("-a", "--all", action="store_true", help="include inactive users"), listing),
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
        "change-password",
        "change your password, or as an admin another user's",
        f"{_RUN}:change_password",
        (
            argument("target_user", nargs="?"),
            argument("--password", help="password, for scripts; other users of this machine can see it"),
        ),
    ),
)
