"""How the parent of a task's processes asks one that keeps outputs to end by itself: a fifo in its run folder.

Only a process that listens has the fifo open, so that any other task is killed at once. Imports little: every shim
loads this module.
"""

import errno
import os
import stat
import threading
from collections.abc import Callable

FIFO = "end-request"
STORE_SECONDS = 30.0
"""Time in which a killed task may store its outputs."""
END_SECONDS = STORE_SECONDS + 5.0
"""Time after which a task that was asked to end is killed."""


def send(path: str) -> bool:
    """Asks the task whose run folder has this fifo to end. Returns False if it does not listen.

    The task may have put anything in the place of the fifo.
    """
    try:
        fifo = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return stat.S_ISFIFO(os.fstat(fifo).st_mode) and os.write(fifo, b".") == 1
    except OSError:
        return False
    finally:
        os.close(fifo)


def is_there(path: str) -> bool:
    """Returns True if a task has made its fifo."""
    try:
        return stat.S_ISFIFO(os.lstat(path).st_mode)
    except OSError:
        return False


def listen(folder: str, act: Callable[[], object]) -> None:
    """Calls ``act`` once, in a thread, when this task is asked to end. Does nothing where no fifo can be made."""
    path = os.path.join(folder, FIFO)
    try:
        os.mkfifo(path, 0o600)
    except OSError as error:
        if error.errno != errno.EEXIST:
            return
    try:
        fifo = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)  # with a writer of its own it never ends
    except OSError:
        return

    def wait() -> None:
        if os.read(fifo, 1):
            act()

    threading.Thread(target=wait, name="end request", daemon=True).start()
