"""Entry point of :mod:`determined_launch.roles` under Determined's module name."""

import sys

from determined_launch.roles import main

__all__ = ["main"]

if __name__ == "__main__":
    sys.exit(main())
