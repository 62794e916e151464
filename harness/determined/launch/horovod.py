"""Face of :mod:`determined_launch.horovod`."""

import sys

from determined_launch.horovod import main

__all__ = ["main"]

if __name__ == "__main__":
    sys.exit(main())
