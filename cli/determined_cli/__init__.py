"""The command line."""

from determined_launch.distribution_guard import stop

stop("det")

__version__ = "0.38.1+detent0.1.0"  # stands here once more because importing determined costs more than --version may
