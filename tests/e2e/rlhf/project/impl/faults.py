"""Faults that a test asks for by a variable: FAULT=actor:0:train_step:3:kill."""

import os
import signal
import time


def fail_at(role, index, place, number):
    """Fails if the test asks for a fault of this worker, at this place and for this number."""
    *where, action = (os.environ.get("FAULT") or "none").split(":")
    if where != [role, str(index), place, str(number)]:
        return
    if action == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if action == "raise":
        raise RuntimeError("asked to fail")
    if action == "exit":
        os._exit(7)
    while True:
        time.sleep(1)
