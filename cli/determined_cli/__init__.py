"""The command line."""

from determined_launch.distribution_guard import exit_if_both_installed
from determined_launch.version import __version__ as __version__

exit_if_both_installed("det")
