"""determined_agent."""

from determined_launch.beside import stop

stop("det-agent")
