"""determined_agent."""

import sys

if not sys.flags.no_site:  # the shim runs with the standard library alone: nothing lies beside it, nor can be imported
    from determined_launch.beside import stop

    stop("det-agent")
