"""The master: the only one that speaks SQL."""

from determined_launch.beside import stop

stop("det-master")
