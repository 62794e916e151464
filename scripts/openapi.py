"""Writes the master's OpenAPI page without starting it: what the web page's types are generated from."""

import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from determined_master.server.app import create_app
from determined_master.settings.settings import Settings
from determined_master.wiring.services import build


def main() -> None:
    with TemporaryDirectory() as folder:
        page = create_app(build(Settings(data=Path(folder)))).openapi()
    Path(sys.argv[1]).write_text(json.dumps(page, indent=1, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
