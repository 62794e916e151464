"""Face of :mod:`determined_launch.autohorovod`."""

import sys

from determined_launch.autohorovod import main

__all__ = ["main"]

if __name__ == "__main__":
    sys.exit(main())
