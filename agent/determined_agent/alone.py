"""Imported first by the program: stops it where the older distribution lies beside this one.

Not in the package itself, which the shim imports too, from no environment at all.
"""

from determined_launch.beside import stop

stop("det-agent")
