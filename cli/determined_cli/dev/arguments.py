"""Command table of ``det dev``."""

from determined_cli.command import Command, argument

NOUNS_WITHOUT_VERBS = ()

VERBS = (
    Command(
        "curl",
        "call the REST API with curl and the stored sign-in",
        "determined_cli.dev.commands:curl",
        (argument("path", metavar="PATH"), argument("arguments", nargs="...", metavar="CURL_ARGUMENT")),
        examples=("det dev curl /api/v1/me", 'det dev curl /api/v1/experiments/3 -X PATCH -d \'{"name": "new"}\''),
    ),
)
