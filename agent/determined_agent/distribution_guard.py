"""Refuses an older distribution at import. Only the program imports it first; the shim imports other modules alone."""

from determined_launch.distribution_guard import stop

stop("det-agent")
