"""Forks shims, each in a few milliseconds: run as ``python -I -S fork_server.py ROOTS SPACE``.

Has imported all that a shim and the start-up of a task import; a Python of their own would import it again for each
task. It knows nothing of tasks and no secret. Its agent sends it, on its standard input, the paths of one shim in each
message, with the descriptor of the pipe in which that shim reports its start. It ends when its agent has ended; the
shims continue.

``ROOTS`` are the folders of the packages. Each shim writes its own command line over that of this program; ``SPACE``,
the last word, makes room for it.
"""

import gc
import importlib
import json
import os
import signal
import socket
import sys
import traceback
from typing import NoReturn

# Last, because modules beside an installed package may have names of the standard library.
sys.path += sys.argv[1].split(os.pathsep)

from determined_agent.task_process import processes, shim
from determined_agent.task_process.task_spawn import RUN_TASK, Programs

MAX_MESSAGE = 16384
ALSO_NEEDED = ("encodings.idna", "determined.storage.bucket", "determined.storage.shared_fs")
"""Modules that most tasks import as they start: to look up the master's address, and to try their storage."""


def main() -> int:
    requests = socket.socket(fileno=os.dup(0))
    programs = {RUN_TASK: importlib.import_module(RUN_TASK).main}
    for module in ALSO_NEEDED:
        importlib.import_module(module)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel collects ended shims
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.freeze()
    while True:
        message, descriptors, _, _ = socket.recv_fds(requests, MAX_MESSAGE, 1)
        if not message:
            return 0
        try:
            pid = os.fork()
        except OSError as error:  # closing the pipe tells the agent
            print(f"cannot fork a shim: {error}", file=sys.stderr, flush=True)
        else:
            if pid == 0:
                _be_shim(json.loads(message), descriptors[0], programs)
        os.close(descriptors[0])


def _be_shim(paths: dict[str, str], report: int, programs: Programs) -> NoReturn:
    """Ends without the interpreter's own end, which would touch, and so copy, all memory shared with the server."""
    code = 1
    try:
        code = _run_shim(paths, report, programs)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def _run_shim(paths: dict[str, str], report: int, programs: Programs) -> int:
    os.setsid()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    log = os.open(paths["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for source, target in ((os.open(os.devnull, os.O_RDONLY), 0), (report, 1), (log, 2)):
        os.dup2(source, target)
    processes.replace_command_line([sys.executable, "-I", "-S", shim.__file__ or "shim.py", paths["order"]])
    return shim.main(paths["order"], programs)


if __name__ == "__main__":
    sys.exit(main())
