"""Starts Python programs as forks of a process that has imported their modules, so that none imports them again.

A fork leaves everything of its parent by an exception that only the parent's outermost function catches. It then runs
the wrapper, and the wrapper's fork the program, in the same way as a new process does: its environment, arguments,
``__main__``, standard streams and signals are its own, and the interpreter ends as usual.
"""

import gc
import importlib
import importlib.util
import os
import signal
import sys
import threading
import types
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NoReturn

from determined_launch import process, processes, wrap_rank
from determined_launch.errors import LaunchError
from determined_launch.role_plan import ProcessPlan

Mask = set[int | signal.Signals]
_DEVICES = "/dev/nvidia"


@dataclass
class ForkedProcess:
    """A fork, as its parent sees it; like ``subprocess.Popen``."""

    pid: int
    stdout: BinaryIO | None = None
    stderr: BinaryIO | None = None
    _status: int | None = None

    def poll(self) -> int | None:
        return self._look(os.WNOHANG)

    def wait(self) -> int:
        status = self._look(0)
        assert status is not None
        return status

    def send_signal(self, number: int) -> None:
        """Sends a signal; a handler may do so while ``wait`` waits."""
        if self._status is None:
            os.kill(self.pid, number)

    def _look(self, how: int) -> int | None:
        if self._status is not None:
            return self._status
        ended = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT | how)
        if ended is None:
            return None
        # known before the pid is free for another process
        self._status = ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status
        os.waitpid(self.pid, 0)
        return self._status


class InFork(BaseException):
    """Raised in a fork: leaves the frames of the parent, whose context managers restore the signals."""

    def __init__(self, mask: Mask) -> None:
        super().__init__()
        self._mask = mask

    def unblock(self) -> None:
        """Lets the signals through that came since the fork."""
        signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)


class WrapperFork(InFork):
    """A fork that becomes the wrapper of one process."""

    def __init__(self, mask: Mask, planned: ProcessPlan) -> None:
        super().__init__(mask)
        self.planned = planned

    def run(self, environ: Mapping[str, str]) -> int:
        """Runs the wrapper. Raises ProgramFork in the fork that becomes the program."""
        _set_environment(environ)
        _open_null_as_stdin()
        processes.set_name(processes.wrapper_name(self.planned.rank))
        self.unblock()
        return wrap_rank.main([str(self.planned.rank), "--", *self.planned.command], start=_fork_program)


class ProgramFork(InFork):
    """A fork that becomes the program of one process."""

    def __init__(self, mask: Mask, command: Sequence[str], environ: Mapping[str, str]) -> None:
        super().__init__(mask)
        self._command = command
        self._environ = environ

    def run(self, label: str) -> NoReturn:
        """Runs the program and ends the process as the interpreter does."""
        _set_environment(self._environ)
        processes.set_name(label)
        for stream in (sys.stdout, sys.stderr):
            stream.reconfigure(line_buffering=stream is sys.stderr)  # type: ignore[union-attr]  # text streams
        _seed_libraries()
        self.unblock()
        sys.orig_argv[:] = self._command
        _run_program(self._command[1:])


def preload(modules: Sequence[str]) -> str:
    """Imports the modules. Returns why this process cannot be forked then; empty if it can. Raises LaunchError."""
    before = threading.enumerate()
    for name in modules:
        try:
            importlib.import_module(name)
        except Exception as error:
            what = f"{type(error).__name__}: {error}"
            raise LaunchError(f"preload: cannot import {name}: {what}; install it or take it from preload") from None
    gc.collect()
    gc.freeze()  # a collection would copy the memory of each fork
    started = [thread.name for thread in threading.enumerate() if thread not in before]
    if started:
        return f"the import has started the thread {started[0]}"
    if any(link.startswith(_DEVICES) for link in _open_files()):
        return "the import has opened a GPU"
    return ""


def can_run(command: Sequence[str]) -> bool:
    """Returns True for ``python3 -m MODULE …`` and ``python3 SCRIPT.py …`` with the Python of this process."""
    if command[0] != sys.executable or len(command) < 2:
        return False
    return (command[1] == "-m" and len(command) > 2) or (command[1][:1] != "-" and command[1].endswith(".py"))


def fork_wrapper(planned: ProcessPlan) -> ForkedProcess:
    """Returns the fork. In the fork it raises WrapperFork."""
    with _fork() as (pid, mask):
        if pid == 0:
            raise WrapperFork(mask, planned)
    return ForkedProcess(pid)


def _fork_program(command: Sequence[str], environ: Mapping[str, str]) -> ForkedProcess:
    (read_out, write_out), (read_error, write_error) = os.pipe(), os.pipe()
    with _fork() as (pid, mask):
        if pid == 0:
            os.dup2(write_out, 1)
            os.dup2(write_error, 2)
            for number in (read_out, read_error, write_out, write_error):
                os.close(number)
            raise ProgramFork(mask, command, environ)
    os.close(write_out)
    os.close(write_error)
    return ForkedProcess(pid, open(read_out, "rb", buffering=0), open(read_error, "rb", buffering=0))


@contextmanager
def _fork() -> Iterator[tuple[int, Mask]]:
    """Forks with the forwarded signals blocked: the handlers of the parent must not run in the fork."""
    sys.stdout.flush()
    sys.stderr.flush()
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, process.FORWARDED)
    pid = os.fork()
    if pid:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    yield pid, mask


def _set_environment(environ: Mapping[str, str]) -> None:
    kept = dict(environ)
    os.environ.clear()
    os.environ.update(kept)


def _open_null_as_stdin() -> None:
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)


def _seed_libraries() -> None:
    """Seeds the global streams of numpy and torch, which would be the same in all forks; Python's own seeds itself."""
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed()
    generator = getattr(sys.modules.get("torch"), "default_generator", None)
    if generator is not None:
        generator.seed()


def _run_program(words: Sequence[str]) -> NoReturn:
    main = types.ModuleType("__main__")
    try:
        code = _load(words, main)
        sys.modules["__main__"] = main
        exec(code, main.__dict__)
    except SystemExit:
        raise
    except BaseException as error:
        _hide_own_frames(error)
        raise
    sys.exit(0)


def _hide_own_frames(error: BaseException) -> None:
    """Lets the interpreter, which is about to end with this error, show the frames of the program only."""
    frames, show = error.__traceback__, sys.excepthook
    while frames is not None and frames.tb_frame.f_code.co_filename == __file__:
        frames = frames.tb_next
    sys.excepthook = lambda kind, error, _: show(kind, error.with_traceback(frames), frames)


def _load(words: Sequence[str], main: types.ModuleType) -> types.CodeType:
    """Returns the code of a module or script, and sets the names of ``main``, ``sys.argv`` and ``sys.path``."""
    if words[0] != "-m":
        script = Path(words[0]).absolute()
        _set_start(words, str(script.resolve().parent))
        try:
            source = script.read_bytes()
        except OSError as error:
            sys.exit(f"{sys.executable}: can't open file {str(script)!r}: [Errno {error.errno}] {error.strerror}")
        main.__file__ = str(script)
        return compile(source, str(script), "exec", dont_inherit=True)
    _set_start(words[1:], os.getcwd())
    importlib.invalidate_caches()
    try:
        spec = importlib.util.find_spec(words[1])
        if spec is not None and spec.submodule_search_locations is not None:
            spec = importlib.util.find_spec(f"{words[1]}.__main__")
    except ModuleNotFoundError as error:
        sys.exit(f"{sys.executable}: Error while finding module specification for {words[1]!r} ({error!r})")
    get_code = getattr(spec.loader, "get_code", None) if spec is not None else None
    if spec is None or get_code is None:
        sys.exit(f"{sys.executable}: No module named {words[1]}")
    main.__spec__, main.__loader__, main.__package__ = spec, spec.loader, spec.parent
    if spec.origin is not None:
        main.__file__ = sys.argv[0] = spec.origin
    code: types.CodeType = get_code(spec.name)
    return code


def _set_start(argv: Sequence[str], folder: str) -> None:
    sys.argv[:] = argv
    if not getattr(sys.flags, "safe_path", False):
        sys.path[0] = folder


def _open_files() -> Iterator[str]:
    with suppress(OSError):
        for name in os.listdir("/proc/self/fd"):
            with suppress(OSError):
                yield os.readlink(f"/proc/self/fd/{name}")
