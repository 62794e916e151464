"""``--local``: runs the same configuration and context on this machine without a master."""

from determined.local.run import run_local

__all__ = ["run_local"]
