"""``core.init()``: assembles the contexts through which a training script talks to the cluster."""

import contextlib
import faulthandler
import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from enum import Enum
from pathlib import Path
from typing import Any

from determined.client.session import FOR_EVER, Session
from determined.core import _steps
from determined.core._checkpoint import CheckpointContext, DummyCheckpointContext
from determined.core._cluster_info import ClusterInfo, read
from determined.core._distributed import DistributedContext, DummyDistributedContext
from determined.core._metric_log import DEBUG_INTERVAL_SECONDS, INTERVAL_SECONDS, MetricLog
from determined.core._metrics import Shipper
from determined.core._own_process import OwnProcess
from determined.core._preempt import DummyPreemptContext, PreemptContext, PreemptMode
from determined.core._profiler import DummyProfilerContext, ProfilerContext
from determined.core._searcher import DummySearcherContext, SearcherContext
from determined.core._searcher_metric import SearcherMetricWatch
from determined.core._train import DummyTrainContext, EarlyExitReason, TrainContext
from determined.errors import InvalidHP
from determined.storage.directory import DirectoryStorage
from determined.storage.factory import from_config
from determined_launch import environment, pause_signal

logger = logging.getLogger(__name__)


class TensorboardMode(Enum):
    """Selects who uploads event files. It has no effect here: event files stay in the run folder."""

    AUTO = "AUTO"
    MANUAL = "MANUAL"


class Context:
    """The Core API of one task, with one attribute for each part; :func:`init` makes it.

    Attributes:
        train: reports metrics, progress and status.
        checkpoint: stores and reads checkpoints.
        preempt: asks whether the trial must stop now.
        distributed: ranks, and exchange of objects between workers.
        searcher: the deprecated search operations.
        profiler: samples processor and memory.
        info: the cluster information; None off the cluster.
    """

    def __init__(
        self,
        *,
        train: TrainContext,
        checkpoint: CheckpointContext,
        preempt: PreemptContext,
        distributed: DistributedContext,
        searcher: SearcherContext,
        profiler: ProfilerContext,
        info: ClusterInfo | None = None,
    ) -> None:
        self.train = train
        self.checkpoint = checkpoint
        self.preempt = preempt
        self.distributed = distributed
        self.searcher = searcher
        self.profiler = profiler
        self.info = info
        self._process = OwnProcess()

    def close(self, *, deliver: bool = True) -> None:
        """Stops all threads.

        Args:
            deliver: wait until the master has accepted every report.
        """
        if not self._process.is_current:
            return  # a forked process that leaves the block would close the connections of the other one
        self.preempt.close()
        self.profiler.close()
        self.train.close(deliver=deliver)
        self.distributed.close()


@contextlib.contextmanager
def init(
    *,
    distributed: DistributedContext | None = None,
    checkpoint_storage: str | Mapping[str, Any] | None = None,
    preempt_mode: PreemptMode = PreemptMode.WorkersAskChief,
    tensorboard_mode: TensorboardMode = TensorboardMode.AUTO,
) -> Iterator[Context]:
    """Yields the Core API of this task and closes it after the block.

    Off the cluster, reports are logged and checkpoints are stored in a folder of the user.

    Args:
        distributed: ranks of the workers; required if the task has more than one slot.
        checkpoint_storage: a ``checkpoint_storage`` section or the path of a folder; by default the configured
            storage.
        preempt_mode: selects which workers ask for preemption.
        tensorboard_mode: accepted for compatibility, without effect.

    Raises:
        ValueError: the task has several slots and ``distributed`` is None.
        SystemExit: with code 0 after the block raised :class:`determined.InvalidHP`, which is reported to the master.

    >>> with init() as core_context:  # doctest: +SKIP
    ...     core_context.train.report_training_metrics(steps_completed=1, metrics={"loss": 0.1})
    """
    environ = environment.current()
    info = read(environ)
    _steps.use(environ)
    if _may_take_sigusr1(environ) and threading.current_thread() is threading.main_thread():
        with contextlib.suppress(ValueError, OSError, AttributeError):  # stderr of some test runners is no file
            faulthandler.register(signal.SIGUSR1, chain=False)
    context = (
        _local(distributed, checkpoint_storage, environ)
        if info is None
        else _managed(info, distributed, checkpoint_storage, preempt_mode, environ)
    )
    try:
        with pause_signal.saves_without_signal(environ):
            yield context
    except InvalidHP as error:
        if context.distributed.rank == 0:
            logger.error("invalid hyperparameters: %s", error)
            context.train.report_early_exit(EarlyExitReason.INVALID_HP)
        context.close()
        sys.exit(0)
    except BaseException:
        context.close(deliver=False)
        raise
    context.close()


def _may_take_sigusr1(environ: Mapping[str, str]) -> bool:
    """Returns False where the signal is the script's: its handler may have been set before the Core API is opened."""
    return hasattr(signal, "SIGUSR1") and environ.get(environment.PAUSE_SIGNAL) != "SIGUSR1"


def _local(
    distributed: DistributedContext | None, storage: str | Mapping[str, Any] | None, environ: Mapping[str, str]
) -> Context:
    peers = distributed or DummyDistributedContext()
    base = Path(environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share"), "determined")
    where = DirectoryStorage(base / "checkpoints") if storage is None else from_config(storage, environ)
    stop_file = environ.get(environment.STOP_FILE)
    train = DummyTrainContext(stop_file=Path(stop_file) if stop_file else None)
    return Context(
        train=train,
        checkpoint=DummyCheckpointContext(where, peers),
        preempt=DummyPreemptContext(),
        distributed=peers,
        searcher=DummySearcherContext(train),
        profiler=DummyProfilerContext(),
    )


def _managed(
    info: ClusterInfo,
    distributed: DistributedContext | None,
    storage: str | Mapping[str, Any] | None,
    preempt_mode: PreemptMode,
    environ: Mapping[str, str],
) -> Context:
    if distributed is None:
        distributed = _single_worker(info)
    trial = info.trial
    config, run_id = trial._config, trial._trial_run_id  # noqa: SLF001  # the underscore keeps it out of the public interface
    folder = Path(environ.get(environment.RUN_DIR, environment.DEFAULT_RUN_DIR))
    # retries for ever: a trial must not fail because its master is away; calls that must not wait set a limit
    session = Session(info.master_url, allocation_token=info.session_token, retry=FOR_EVER)
    shipper = _shipper(info, folder, starts=distributed.local_rank == 0)
    watch = SearcherMetricWatch(
        (config.get("searcher") or {}).get("metric"), continues=info.latest_checkpoint is not None
    )
    train = TrainContext(
        session,
        shipper,
        trial_id=trial.trial_id,
        run_id=run_id,
        experiment_id=trial.experiment_id,
        distributed=distributed,
        folder=folder,
        metric_log=_metric_log(config, environ),
        searcher_metric=watch,
    )
    checkpoint = CheckpointContext(
        from_config(config.get("checkpoint_storage") or {} if storage is None else storage, environ),
        distributed,
        session=session,
        task_id=info.task_id,
        allocation_id=info.allocation_id,
        before_report=train.flush,
    )
    return Context(
        train=train,
        checkpoint=checkpoint,
        preempt=_preempt(info, distributed, preempt_mode, watch),
        distributed=distributed,
        searcher=SearcherContext(config, train, is_chief=distributed.rank == 0),
        profiler=ProfilerContext(
            shipper.put_quietly, trial_id=trial.trial_id, run_id=run_id, collects=distributed.local_rank == 0
        ),
        info=info,
    )


def _metric_log(config: Mapping[str, Any], environ: Mapping[str, str]) -> MetricLog:
    return MetricLog(
        enabled=environ.get(environment.LOG_METRICS, "").lower() not in ("false", "0"),
        interval=DEBUG_INTERVAL_SECONDS if config.get("debug") else INTERVAL_SECONDS,
    )


def _single_worker(info: ClusterInfo) -> DistributedContext:
    """Returns the context of a task with one worker. Raises ValueError if the task has more than one slot."""
    if sum(info.container_slot_counts) > 1:
        raise ValueError(
            "this task has more than one slot: pass a DistributedContext to core.init(), "
            "for example core.DistributedContext.from_torch_distributed()"
        )
    return DummyDistributedContext()


def _shipper(info: ClusterInfo, folder: Path, *, starts: bool) -> Shipper:
    """Returns what sends metric reports, with a connection of its own."""
    session = Session(info.master_url, allocation_token=info.session_token)
    shipper = Shipper(session, info.trial.trial_id, spool=folder / "spool", on_gone=leave)
    if starts:
        shipper.start()
    return shipper


def _preempt(
    info: ClusterInfo, distributed: DistributedContext, mode: PreemptMode, watch: SearcherMetricWatch
) -> PreemptContext:
    """Returns the started watch for preemption, with a connection of its own: its poll blocks."""
    session = Session(info.master_url, allocation_token=info.session_token)
    return PreemptContext(
        session, info.allocation_id, distributed, mode, on_gone=leave, on_acknowledged=watch.interrupted
    ).start()


def leave(text: str) -> None:
    """Ends the process immediately because any further action could harm the attempt that replaced this one."""
    print(f"determined: {text}; leaving", file=sys.stderr, flush=True)
    os._exit(1)
