"""``python -m determined_cli`` is ``det``."""

import sys

from determined_cli.main import main

if __name__ == "__main__":
    sys.exit(main())
