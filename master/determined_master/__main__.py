"""``det-master``: serves, or runs the command that its first word names."""

import sys
from collections.abc import Sequence
from importlib import import_module

VERBS = {
    "add-agent": "determined_master.data_folder.maintenance:add_agent",
    "backup": "determined_master.data_folder.maintenance:back_up",
    "copy-database": "determined_master.data_folder.maintenance:copy_database",
    "make-certificate": "determined_master.server.tls:main",
    "migrate": "determined_master.data_folder.maintenance:migrate",
    "restore": "determined_master.data_folder.maintenance:restore",
}
"""Commands other than serving: module and function, which gets the words after the verb."""
SERVE = "determined_master.server.run:run"


def main(argv: Sequence[str] | None = None) -> int:
    words = sys.argv[1:] if argv is None else list(argv)
    verb = words.pop(0) if words and words[0] in VERBS else None
    # Imported here: what a command needs is a tenth of what the server needs.
    module, _, function = (VERBS[verb] if verb else SERVE).partition(":")
    return int(getattr(import_module(module), function)(words))


if __name__ == "__main__":
    raise SystemExit(main())
