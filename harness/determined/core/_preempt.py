"""Preemption: learns from the master that the trial has to give back its slots."""

from collections.abc import Callable
from enum import Enum

from determined.client import allocations
from determined.client.preemption_watch import Watcher
from determined.client.session import Session
from determined.core import _steps
from determined.core._distributed import DistributedContext
from determined.core._own_process import OwnProcess


class PreemptMode(Enum):
    """Selects which workers ask for preemption.

    ``WorkersAskChief``: every worker calls ``should_preempt`` at the same point and receives the chief's answer.
    ``ChiefOnly``: only the chief may call it. ``WorkersAskMaster``: each worker asks the master on its own.
    """

    WorkersAskChief = "WORKERS_ASK_CHIEF"
    ChiefOnly = "CHIEF_ONLY"
    WorkersAskMaster = "WORKERS_ASK_MASTER"


class PreemptContext:
    """Answers whether the trial must stop now: ``core_context.preempt``. Ask wherever stopping is cheap.

    :func:`determined.core.init` makes it.

    >>> if core_context.preempt.should_preempt():  # doctest: +SKIP
    ...     save_checkpoint()
    ...     return
    """

    def __init__(
        self,
        session: Session,
        allocation_id: str,
        distributed: DistributedContext,
        mode: PreemptMode,
        *,
        on_gone: Callable[[str], object],
        on_acknowledged: Callable[[], object] = lambda: None,
    ) -> None:
        self._on_acknowledged = on_acknowledged
        self._session = session
        self._allocation_id = allocation_id
        self._distributed = distributed
        self._mode = mode
        self._acknowledged = False
        self._process = OwnProcess()
        asks = distributed.rank == 0 or mode is PreemptMode.WorkersAskMaster
        self._watcher = Watcher(session, allocation_id, on_gone=on_gone) if asks else None

    def start(self) -> "PreemptContext":
        """Starts to watch for preemption and returns this context; :func:`determined.core.init` calls it."""
        if self._watcher is not None:
            self._watcher.start()
        return self

    def should_preempt(self, auto_ack: bool = True) -> bool:
        """Returns True if the trial must save a checkpoint and exit now.

        Args:
            auto_ack: acknowledge the preemption immediately, so that exit code 0 means "not finished". With False,
                call :meth:`acknowledge_preemption_signal` before the process exits.

        Raises:
            RuntimeError: with ``PreemptMode.ChiefOnly``, if a worker that is not the chief calls it.
        """
        _steps.mark()
        if self._mode is PreemptMode.ChiefOnly and self._distributed.rank != 0:
            raise RuntimeError("with PreemptMode.ChiefOnly only the chief (rank 0) may call should_preempt()")
        answer = self._first_answer()
        if self._mode is PreemptMode.WorkersAskChief and self._distributed.size > 1:
            answer = bool(self._distributed.broadcast(answer))
        if answer and auto_ack:
            self.acknowledge_preemption_signal()
        return answer

    def _first_answer(self) -> bool:
        if self._watcher is None:
            return False
        self._process.require("should_preempt() is asked")
        return self._watcher.first_answer()

    def acknowledge_preemption_signal(self) -> None:
        """Tells the master that the trial will exit unfinished: exit code 0 then means "preempted", not "completed"."""
        if self._watcher is not None and not self._acknowledged:
            allocations.acknowledge_preemption(self._session, self._allocation_id)
            self._acknowledged = True
            self._on_acknowledged()

    def close(self) -> None:
        """Stops watching for preemption."""
        if self._watcher is not None:
            self._watcher.close()


class DummyPreemptContext(PreemptContext):
    """The preemption context off the cluster: never preempted."""

    def __init__(self) -> None:
        pass

    def start(self) -> "PreemptContext":
        return self

    def should_preempt(self, auto_ack: bool = True) -> bool:
        _steps.mark()
        return False

    def acknowledge_preemption_signal(self) -> None:
        pass

    def close(self) -> None:
        pass
