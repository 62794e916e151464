"""Command table of ``det user``."""

from determined_cli.command import Command, argument, listing

BARE = ()

_RUN = "determined_cli.user.commands"

VERBS = (
    Command(
        "login",
        "log in and be remembered",
        f"{_RUN}:login",
        (argument("username", nargs="?", help="default: determined"),),
        examples=("det user login admin", "det -m http://host:8080 user login"),
    ),
    Command("logout", "forget the login", f"{_RUN}:logout"),
    Command("whoami", "who is logged in", f"{_RUN}:whoami"),
    Command(
        "list",
        "all users",
        f"{_RUN}:list_users",
        (argument("-a", "--all", action="store_true", help="inactive ones too"), listing),
        aliases=("ls",),
    ),
    Command(
        "create",
        "a new user; the password is asked for",
        f"{_RUN}:create",
        (
            argument("username"),
            argument("--admin", action="store_true"),
            argument("--password", help="for scripts; others on this machine may see it"),
        ),
    ),
    Command(
        "change-password",
        "a new password; one's own unless a name is given",
        f"{_RUN}:change_password",
        (argument("target_user", nargs="?"), argument("--password", help="for scripts")),
    ),
)
