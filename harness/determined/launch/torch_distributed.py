"""Entry point of :mod:`determined_launch.torch_distributed` under Determined's module name."""

import sys

from determined_launch.torch_distributed import main

__all__ = ["main"]

if __name__ == "__main__":
    sys.exit(main())
