"""The folders with this agent's own packages: two in a checkout, one in an installation."""

from pathlib import Path

import determined_agent
import determined_launch

OWN = Path(determined_agent.__file__).resolve().parent.parent
LAUNCH = Path(determined_launch.__file__).resolve().parent.parent
SOURCE_ROOTS = (str(OWN),) if OWN == LAUNCH else (str(OWN), str(LAUNCH))
"""Folders for the module path of a Python that is started without site-packages."""
