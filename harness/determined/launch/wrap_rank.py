"""Entry point of :mod:`determined_launch.wrap_rank` under Determined's module name."""

import sys

from determined_launch.wrap_rank import main

__all__ = ["main"]

if __name__ == "__main__":
    sys.exit(main())
