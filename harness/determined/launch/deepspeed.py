"""Entry point of :mod:`determined_launch.deepspeed` under Determined's module name."""

import sys

from determined_launch.deepspeed import main

__all__ = ["main"]

if __name__ == "__main__":
    sys.exit(main())
