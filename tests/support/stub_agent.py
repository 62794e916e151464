"""A program that locks its data folder like ``det-agent`` and then only waits for SIGTERM."""

import signal
import sys
from pathlib import Path

from determined_launch.pid_lock import PidLock

if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    folder = Path(sys.argv[sys.argv.index("--data") + 1])
    if "broken" in sys.argv[sys.argv.index("--pool") + 1]:
        sys.exit("no slots here")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with PidLock(folder / "agent.lock"):
        signal.sigwait([signal.SIGTERM])
