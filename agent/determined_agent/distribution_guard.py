"""Imported first by the program, and by it alone: the shim imports this package without the others beside it."""

from determined_launch.distribution_guard import stop

stop("det-agent")
