"""The master: the only process that accesses the database."""

from determined_launch.distribution_guard import stop

stop("det-master")
