"""The command line."""

from determined_launch.distribution_guard import stop
from determined_launch.version import __version__ as __version__

stop("det")
