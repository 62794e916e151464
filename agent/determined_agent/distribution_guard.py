"""Refuses an older distribution at import. Only the program imports it first; the shim imports other modules alone."""

from determined_launch.distribution_guard import exit_if_both_installed

exit_if_both_installed("det-agent")
