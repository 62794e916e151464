"""Trials of the SDK: state, metrics, logs, checkpoints."""

import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from determined.client import lifecycle, outputs, trials
from determined.client.numbers import from_wire as numbers
from determined.client.session import Session
from determined.errors import NotFound
from determined.experimental._checkpoint import Checkpoint
from determined.experimental._checkpoint_owner import CheckpointOwner, first
from determined.experimental._enums import CheckpointSortBy, LogLevel, OrderBy, TrialState, from_wire
from determined.experimental._metrics import TrialMetrics, stream_reports
from determined.experimental._outputs import TrialOutputs
from determined.experimental._times import parse_time


class Trial(CheckpointOwner):
    """One training with one set of hyperparameters.

    Args:
        session: the connection to the master.
        data: what the API shows.

    Attributes:
        id: its id.
        experiment_id: id of its experiment.
        hparams: its hyperparameters.
        state: a TrialState.
        steps_completed: batches that were done at the last report.
        restarts: attempts that failed and were repeated.
        summary_metrics: count, last, minimum, maximum and mean of each metric, by group and name.
        searcher_metric_value: best value of the searcher's metric, or None.
        start_time: time of its creation, with a time zone.
        end_time: time of its end, or None.

    Example:
        >>> for report in client.get_trial(7).iter_metrics("validation"):    # doctest: +SKIP
        ...     print(report.steps_completed, report.metrics["loss"])
    """

    def __init__(self, session: Session, data: Mapping[str, Any]) -> None:
        self._session = session
        self._set(data)

    def _set(self, data: Mapping[str, Any]) -> None:
        self.id = int(data["id"])
        self.experiment_id = int(data["experimentId"])
        self.hparams: dict[str, Any] = dict(data.get("hparams") or {})
        self.state = from_wire(TrialState, data.get("state"))
        self.steps_completed = int(data.get("totalBatchesProcessed") or 0)
        self.restarts = int(data.get("restarts") or 0)
        self.summary_metrics: dict[str, Any] = numbers(data.get("summaryMetrics") or {})
        metric = numbers(data.get("searcherMetricValue"))
        self.searcher_metric_value = None if metric is None else float(metric)
        self.start_time: datetime | None = parse_time(data.get("startTime"))
        self.end_time: datetime | None = parse_time(data.get("endTime"))

    @property
    def _checkpoints_path(self) -> str:
        return f"{trials.PREFIX}/{self.id}/checkpoints"

    @property
    def _title(self) -> str:
        return f"trial {self.id}"

    def __repr__(self) -> str:
        return f"Trial(id={self.id}, experiment_id={self.experiment_id}, state={self.state.name})"

    def reload(self) -> None:
        """Reads the trial from the master again."""
        self._set(trials.get(self._session, self.id))

    def kill(self) -> None:
        """Ends the trial immediately, without a checkpoint; for its owner and admins."""
        lifecycle.kill_trial(self._session, self.id)

    def iter_metrics(self, group: str | None = None) -> Iterator[TrialMetrics]:
        """Yields the reported metrics, oldest first.

        Args:
            group: ``training``, ``validation``, or a group of the script's own; all groups if not given.

        Returns:
            An iterator of TrialMetrics.
        """
        return stream_reports(self._session, [self.id], group or "")

    def stream_metrics(self, group: str) -> Iterator[TrialMetrics]:
        """Same as :meth:`iter_metrics`, under its older name.

        Args:
            group: name of the group.
        """
        return self.iter_metrics(group)

    def stream_training_metrics(self) -> Iterator[TrialMetrics]:
        """Yields the training metrics; older name of ``iter_metrics("training")``."""
        return self.iter_metrics("training")

    def stream_validation_metrics(self) -> Iterator[TrialMetrics]:
        """Yields the validation metrics; older name of ``iter_metrics("validation")``."""
        return self.iter_metrics("validation")

    def iter_logs(
        self,
        follow: bool = False,
        *,
        head: int | None = None,
        tail: int | None = None,
        rank_ids: Sequence[int] | None = None,
        stdtypes: Sequence[str] | None = None,
        min_level: LogLevel | None = None,
    ) -> Iterator[str]:
        """Yields lines of the log, each with its line end.

        Args:
            follow: go on until the trial ends.
            head: at most so many of the first lines.
            tail: at most so many of the last lines; not together with ``head`` or ``follow``.
            rank_ids: only lines of these ranks.
            stdtypes: only ``stdout`` or ``stderr``.
            min_level: only lines of this level and above.

        Returns:
            An iterator of lines.

        Raises:
            ValueError: arguments exclude each other.
        """
        if tail is not None and (head is not None or follow):
            raise ValueError("tail cannot be combined with head or follow")
        levels = list(LogLevel)
        query: dict[str, Any] = {
            "follow": follow,
            "limit": tail if tail is not None else head,
            "orderBy": OrderBy.DESC.value if tail is not None else None,
            "rankIds": list(rank_ids or ()),
            "stdtypes": list(stdtypes or ()),
            "levels": [level.value for level in levels[levels.index(min_level) :]] if min_level else [],
        }
        lines = self._session.stream(f"{trials.PREFIX}/{self.id}/logs", query)
        messages = (str(line["message"]) for line in lines)
        return iter(list(messages)[::-1]) if tail is not None else messages

    def logs(self, *args: Any, **kwargs: Any) -> Iterator[str]:  # noqa: ANN401  # those of iter_logs
        """Same as :meth:`iter_logs`, under its older name.

        Args:
            args: positional arguments of iter_logs.
            kwargs: keyword arguments of iter_logs.
        """
        return self.iter_logs(*args, **kwargs)

    def outputs(self) -> TrialOutputs | None:
        """Returns what the script of the trial wrote into the folders of ``outputs``, as its newest attempt left it.

        Returns:
            None if its configuration names no outputs, or no attempt has ended yet.
        """
        try:
            return TrialOutputs(self._session, outputs.of_trial(self._session, self.experiment_id, self.id))
        except NotFound:
            return None

    def download_outputs(self, path: str | os.PathLike[str] | None = None) -> str:
        """Copies the files that the script of the trial wrote into a folder.

        Args:
            path: the folder; ``outputs/trial-ID`` below the working folder if not given. It is created.

        Returns:
            The folder.

        Raises:
            NotFound: there are none.
            StorageError: the files are gone.
            ApiError: the master refuses.

        Example:
            >>> folder = client.get_trial(7).download_outputs("results")        # doctest: +SKIP
        """
        found = outputs.of_trial(self._session, self.experiment_id, self.id)
        return TrialOutputs(self._session, found).download(path)

    def select_checkpoint(
        self,
        *,
        latest: bool = False,
        best: bool = False,
        uuid: str | None = None,
        sort_by: str | None = None,
        smaller_is_better: bool | None = None,
    ) -> Checkpoint:
        """Returns one checkpoint by exactly one of ``latest``, ``best`` and ``uuid``; the older form.

        Args:
            latest: the one of the last step.
            best: the one with the best metric.
            uuid: the one with this id.
            sort_by: name of a validation metric, with ``best``.
            smaller_is_better: direction of ``sort_by``; the experiment's if not given.

        Raises:
            ValueError: none or several were asked for.
            NotFound: there is no such checkpoint.
        """
        if sum((latest, best, uuid is not None)) != 1:
            raise ValueError("give exactly one of latest, best and uuid")
        if latest:
            return self.top_checkpoint(CheckpointSortBy.BATCH_NUMBER, OrderBy.DESC)
        if best:
            order = None if smaller_is_better is None else (OrderBy.ASC if smaller_is_better else OrderBy.DESC)
            return self.top_checkpoint(sort_by, order)
        return first([each for each in self.list_checkpoints() if each.uuid == uuid], self._title, uuid)
