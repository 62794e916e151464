"""The master: the only process that accesses the database."""

from determined_launch.distribution_guard import exit_if_both_installed

exit_if_both_installed("det-master")
