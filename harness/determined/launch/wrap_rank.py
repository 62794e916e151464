"""Face of :mod:`determined_launch.wrap_rank`."""

import sys

from determined_launch.wrap_rank import main

__all__ = ["main"]

if __name__ == "__main__":
    sys.exit(main())
