"""Face of :mod:`determined_launch.deepspeed`."""

import sys

from determined_launch.deepspeed import main

__all__ = ["main"]

if __name__ == "__main__":
    sys.exit(main())
