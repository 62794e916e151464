"""Metrics, progress and status of the trial."""

import logging
import sys
from collections.abc import Mapping
from datetime import datetime, timezone
from enum import Enum
from pathlib import Path
from typing import Any

from determined.client import experiments, trials
from determined.client.numbers import to_wire
from determined.client.session import Session
from determined.core import _steps
from determined.core._distributed import DistributedContext
from determined.core._metric_log import MetricLog
from determined.core._metric_values import check_sendable, plain
from determined.core._metrics import Shipper
from determined.core._searcher_metric import SearcherMetricWatch

logger = logging.getLogger(__name__)


class EarlyExitReason(Enum):
    """Reason for which a trial ends itself early."""

    INVALID_HP = "EXITED_REASON_INVALID_HP"
    INIT_INVALID_HP = "EXITED_REASON_INIT_INVALID_HP"


class TrainContext:
    """Reports metrics, progress and status of the trial: ``core_context.train``. Only the chief (rank 0) reports.

    :func:`determined.core.init` makes it.

    >>> core_context.train.report_training_metrics(steps_completed=10, metrics={"loss": 0.5})  # doctest: +SKIP
    """

    def __init__(
        self,
        session: Session,
        shipper: Shipper,
        *,
        trial_id: int,
        run_id: int,
        experiment_id: int,
        distributed: DistributedContext,
        folder: Path,
        metric_log: MetricLog | None = None,
        searcher_metric: SearcherMetricWatch | None = None,
    ) -> None:
        self._session = session
        self._shipper = shipper
        self._trial_id = trial_id
        self._run_id = run_id
        self._experiment_id = experiment_id
        self._distributed = distributed
        self._folder = folder
        self._metric_log = metric_log or MetricLog(enabled=False)
        self._searcher_metric = searcher_metric or SearcherMetricWatch(None)

    def report_training_metrics(
        self, steps_completed: int, metrics: Mapping[str, Any], batch_metrics: list[dict[str, Any]] | None = None
    ) -> None:
        """Reports averages over the batches since the last report.

        The report is written to the run folder before the call returns, so it survives a crash of the process while
        the master is away. Values are numbers, strings, tensors, arrays, and lists or dictionaries of them; a tensor
        or array with one element becomes a number.

        Args:
            steps_completed: number of batches that the trial has trained.
            metrics: averages by name.
            batch_metrics: the metrics of each batch, in order.

        Raises:
            TypeError: a value has no JSON form.
            RuntimeError: this worker is not the chief.
            ApiError: the master refused an earlier report.
        """
        self._report("training", steps_completed, metrics, batch_metrics)

    def report_validation_metrics(self, steps_completed: int, metrics: Mapping[str, Any]) -> None:
        """Reports the metrics of one validation. The searcher uses its metric from these reports.

        Args:
            steps_completed: number of batches that the trial has trained.
            metrics: values by name; none may be None.

        Raises:
            ValueError: a value is None.
            TypeError: a value has no JSON form.
            RuntimeError: this worker is not the chief.
            ApiError: the master refused an earlier report.
        """
        missing = sorted(key for key, value in metrics.items() if value is None)
        if missing:
            raise ValueError(f"validation metrics without a value: {', '.join(missing)}")
        self._report("validation", steps_completed, metrics, None)

    def report_metrics(self, group: str, steps_completed: int, metrics: Mapping[str, Any]) -> None:
        """Reports metrics of a group of the user's own.

        Args:
            group: name of the group, not empty and without a dot; for example ``inference``.
            steps_completed: number of batches that the trial has trained.
            metrics: values by name.

        Raises:
            ValueError: the group's name is empty or has a dot.
            TypeError: a value has no JSON form.
            RuntimeError: this worker is not the chief.
            ApiError: the master refused an earlier report.
        """
        if not group or "." in group:
            raise ValueError(f"the name of a metric group must not be empty or contain a dot: {group!r}")
        self._report(group, steps_completed, metrics, None)

    def report_progress(self, progress: float) -> None:
        """Reports the progress of the trial. The call does not wait, and the loss of one report is harmless.

        Args:
            progress: completed fraction of the trial, from 0 to 1.

        Raises:
            ValueError: ``progress`` is below 0 or above 1.
            RuntimeError: this worker is not the chief.
        """
        self._chief_only("report_progress")
        if not 0.0 <= progress <= 1.0:
            raise ValueError(f"progress must be between 0 and 1, not {progress}")
        self._shipper.put_lossy(lambda: trials.report_progress(self._session, self._trial_id, progress))

    def report_early_exit(self, reason: EarlyExitReason) -> None:
        """Reports that the trial ends itself early.

        Args:
            reason: reason of the end.

        Raises:
            RuntimeError: this worker is not the chief.
        """
        self._chief_only("report_early_exit")
        trials.report_early_exit(self._session, self._trial_id, reason.value)

    def get_experiment_best_validation(self) -> float | None:
        """Returns the best value of the searcher's metric over all trials of the experiment; None if there is none yet.

        Raises:
            RuntimeError: this worker is not the chief.
        """
        self._chief_only("get_experiment_best_validation")
        return experiments.find_best_validation(self._session, self._experiment_id)

    def set_status(self, status: str) -> None:
        """Sets a short text that describes the current activity of the trial, shown to people.

        Args:
            status: the text.

        Raises:
            RuntimeError: this worker is not the chief.
        """
        self._chief_only("set_status")
        self._shipper.put_lossy(lambda: trials.set_runner_state(self._session, self._trial_id, status))

    def set_metadata(self, metadata: Mapping[str, Any]) -> dict[str, Any]:
        """Replaces the metadata of the run and returns the stored metadata.

        Args:
            metadata: values by name.

        Raises:
            RuntimeError: this worker is not the chief.
        """
        self._chief_only("set_metadata")
        return trials.set_metadata(self._session, self._trial_id, dict(metadata))

    def get_metadata(self) -> dict[str, Any]:
        """Returns the metadata of the run."""
        return trials.get_metadata(self._session, self._trial_id)

    def get_tensorboard_path(self) -> Path:
        """Returns the folder for event files and creates it if necessary."""
        path = self._folder / "tensorboard"
        path.mkdir(parents=True, exist_ok=True)
        return path

    def upload_tensorboard_files(self) -> None:
        """Does nothing: event files stay in the run folder."""

    def flush(self) -> None:
        """Waits until the master has accepted all reports so far."""
        self._shipper.flush()

    def close(self, *, deliver: bool) -> None:
        """Stops reporting.

        Args:
            deliver: wait until the master has accepted every report.
        """
        self._metric_log.close()
        if deliver and self._distributed.rank == 0:
            self._searcher_metric.end()
        try:
            self._shipper.close(deliver=deliver)
        finally:
            self._session.close()

    def _report(
        self, group: str, steps: int, metrics: Mapping[str, Any], batch_metrics: list[dict[str, Any]] | None
    ) -> None:
        _steps.mark()
        self._chief_only("reporting metrics")
        averages = plain(metrics)
        batches = None if batch_metrics is None else [plain(item) for item in batch_metrics]
        for item in (averages, *(batches or ())):
            check_sendable(item)
        values: dict[str, Any] = {"avgMetrics": to_wire(averages)}
        if batches is not None:
            values["batchMetrics"] = to_wire(batches)
        body = {
            "metrics": {
                "trialId": self._trial_id,
                "trialRunId": self._run_id,
                "stepsCompleted": int(steps),
                "reportTime": now(),
                "metrics": values,
            },
            "group": group,
        }
        self._shipper.put(body)
        self._metric_log.add(group, int(steps), averages)
        if group == "validation":
            self._searcher_metric.validation(int(steps), averages)
        elif group == "training":
            self._searcher_metric.training(int(steps))

    def _chief_only(self, what: str) -> None:
        if self._distributed.rank != 0:
            raise RuntimeError(
                f"{what} may be called only by the chief (rank 0); this is rank {self._distributed.rank}"
            )


class DummyTrainContext(TrainContext):
    """The train context off the cluster: logs reports and keeps them in ``reports``.

    Args:
        folder: folder for event files, by default ``tensorboard`` in the working directory.
        stop_file: file to create at the first validation report, which then ends the process with exit code 0: the
            test mode of scripts.
    """

    def __init__(self, folder: Path | None = None, *, stop_file: Path | None = None) -> None:
        self._stop_file = stop_file
        self.reports: list[tuple[str, int, dict[str, Any]]] = []
        self._folder = folder or Path("tensorboard")

    def _report(
        self, group: str, steps: int, metrics: Mapping[str, Any], batch_metrics: list[dict[str, Any]] | None
    ) -> None:
        _steps.mark()
        values = plain(metrics)
        check_sendable(values)
        self.reports.append((group, steps, values))
        logger.info("%s metrics after %d steps: %s", group, steps, values)
        if self._stop_file is not None and group == "validation":
            self._stop_file.touch()
            sys.exit(0)

    def report_progress(self, progress: float) -> None:
        logger.debug("progress %.3f", progress)

    def report_early_exit(self, reason: EarlyExitReason) -> None:
        logger.info("early exit: %s", reason.name)

    def get_experiment_best_validation(self) -> float | None:
        return None

    def set_status(self, status: str) -> None:
        logger.info("status: %s", status)

    def set_metadata(self, metadata: Mapping[str, Any]) -> dict[str, Any]:
        return dict(metadata)

    def get_metadata(self) -> dict[str, Any]:
        return {}

    def flush(self) -> None:
        pass

    def close(self, *, deliver: bool) -> None:
        pass


def now() -> str:
    """Returns the current time in the format of the API."""
    return datetime.now(timezone.utc).isoformat(timespec="microseconds").replace("+00:00", "Z")
