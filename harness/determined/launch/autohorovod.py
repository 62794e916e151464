"""Entry point of :mod:`determined_launch.autohorovod` under Determined's module name."""

import sys

from determined_launch.autohorovod import main

__all__ = ["main"]

if __name__ == "__main__":
    sys.exit(main())
