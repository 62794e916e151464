"""Entry point of :mod:`determined_launch.tensorflow` under Determined's module name."""

import sys

from determined_launch.tensorflow import main

__all__ = ["main"]

if __name__ == "__main__":
    sys.exit(main())
