"""The files by which a master's data folder is recognised, also by the agents of its machine."""

import os

SECRET = "secret"
"""Name of the file with the key that signs the tokens of tasks."""
AGENT_TOKEN = "agent-token"
"""Name of the file with the join token; agents have a copy of it."""


def is_master_folder(path: str, *, if_unknown: bool = False) -> bool:
    """Returns True if ``path`` is the data folder of a master. Blocking.

    ``if_unknown``: the answer for a folder that is closed to this process.
    """
    try:
        for name in (SECRET, AGENT_TOKEN):
            os.lstat(os.path.join(path, name))
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return if_unknown
    return True
