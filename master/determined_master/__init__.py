"""The master: the only one that speaks SQL."""

from determined_launch.distribution_guard import stop

stop("det-master")
