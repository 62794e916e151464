"""``det user``: log in and out, manage users."""

from determined_cli.verbs import Verb, argument, listing

BARE = ()

_RUN = "determined_cli.user_verbs"

VERBS = (
    Verb(
        "login",
        "log in and be remembered",
        f"{_RUN}:login",
        (argument("username", nargs="?", help="default: determined"),),
        examples=("det user login admin", "det -m http://host:8080 user login"),
    ),
    Verb("logout", "forget the login", f"{_RUN}:logout"),
    Verb("whoami", "who is logged in", f"{_RUN}:whoami"),
    Verb(
        "list",
        "all users",
        f"{_RUN}:list_users",
        (argument("-a", "--all", action="store_true", help="inactive ones too"), listing),
        aliases=("ls",),
    ),
    Verb(
        "create",
        "a new user; the password is asked for",
        f"{_RUN}:create",
        (
            argument("username"),
            argument("--admin", action="store_true"),
            argument("--password", help="for scripts; others on this machine may see it"),
        ),
    ),
    Verb(
        "change-password",
        "a new password; one's own unless a name is given",
        f"{_RUN}:change_password",
        (argument("target_user", nargs="?"), argument("--password", help="for scripts")),
    ),
)
