"""Experiments of the SDK: state, wait, pause and activate, trials, checkpoints, labels."""

import base64
import io
import logging
import os
import tarfile
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from determined.client import experiments, lifecycle, outputs
from determined.client.numbers import from_wire as numbers
from determined.client.paging import items
from determined.client.session import Session
from determined.errors import DeterminedError, MasterUnreachable
from determined.experimental._checkpoint import Checkpoint
from determined.experimental._checkpoint_owner import CheckpointOwner
from determined.experimental._enums import CheckpointSortBy, ExperimentState, OrderBy, TrialSortBy, from_wire
from determined.experimental._outputs import TrialOutputs
from determined.experimental._times import parse_time
from determined.experimental._trial import Trial

logger = logging.getLogger("determined.experimental")


class ExperimentPaused(DeterminedError, ValueError):
    """Raised by ``wait``: the experiment is paused and does not end before somebody activates it."""


class Experiment(CheckpointOwner):
    """An experiment: one configuration, one context, and the trials that its searcher makes.

    Args:
        session: the connection to the master.
        data: what the API shows.

    Attributes:
        id: its id.
        name: its name.
        description: its description; empty if it has none.
        notes: its notes.
        labels: its labels, sorted.
        state: an ExperimentState.
        progress: done part from 0 to 1, or None.
        archived: True if lists hide it.
        config: its configuration, complete with defaults; secrets are masked.
        username: name of its owner.
        project_id: id of its project.
        workspace_id: id of its workspace.
        parent_id: id of the experiment that it was forked from, or None.
        start_time: time of its creation, with a time zone.
        end_time: time of its end, or None.

    Example:
        >>> experiment = client.create_experiment("config.yaml", "model/")   # doctest: +SKIP
        >>> experiment.wait()                                                # doctest: +SKIP
        <ExperimentState.COMPLETED: 'STATE_COMPLETED'>
    """

    def __init__(self, session: Session, data: Mapping[str, Any]) -> None:
        self._session = session
        self._set(data)

    def _set(self, data: Mapping[str, Any]) -> None:
        self.id = int(data["id"])
        self.name = str(data["name"])
        self.description = str(data.get("description") or "")
        self.notes = str(data.get("notes") or "")
        self.labels: list[str] = sorted(data.get("labels") or ())
        self.state = from_wire(ExperimentState, data.get("state"))
        progress = numbers(data.get("progress"))
        self.progress: float | None = None if progress is None else float(progress)
        self.archived = bool(data.get("archived"))
        self.config: dict[str, Any] = dict(data.get("config") or {})
        self.username = str(data.get("username") or "")
        self.project_id = int(data.get("projectId") or 0)
        self.workspace_id: int | None = data.get("workspaceId")
        self.parent_id: int | None = data.get("forkedFrom")
        self.forked_from = self.parent_id
        self.start_time: datetime | None = parse_time(data.get("startTime"))
        self.end_time: datetime | None = parse_time(data.get("endTime"))

    @property
    def _checkpoints_path(self) -> str:
        return f"{experiments.PREFIX}/{self.id}/checkpoints"

    @property
    def _title(self) -> str:
        return f"experiment {self.id}"

    def __repr__(self) -> str:
        return f"Experiment(id={self.id}, name={self.name!r}, state={self.state.name})"

    def reload(self) -> None:
        """Reads the experiment from the master again."""
        self._set(experiments.get(self._session, self.id))

    def wait(self, interval: float = 5.0, *, timeout: float | None = None) -> ExperimentState:
        """Waits until the experiment ends.

        A master that does not answer for a while is waited for; a warning is logged.

        Args:
            interval: seconds between two questions.
            timeout: give up after so many seconds; never if not given.

        Returns:
            The state at the end.

        Raises:
            ExperimentPaused: it is paused (also a ValueError).
            TimeoutError: it did not end within ``timeout``.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        lost = False
        while True:
            try:
                self.reload()
            except MasterUnreachable as error:
                if not lost:
                    logger.warning("waiting for experiment %d: %s", self.id, error)
                lost = True
            else:
                lost = False
                if self.state.is_terminal:
                    return self.state
                if self.state is ExperimentState.PAUSED:
                    raise ExperimentPaused(f"experiment {self.id} is paused; activate it before waiting for its end")
            if deadline is not None and time.monotonic() >= deadline:
                raise TimeoutError(f"experiment {self.id} did not end within {timeout} s; it is {self.state.name}")
            time.sleep(interval if deadline is None else max(0.0, min(interval, deadline - time.monotonic())))

    def await_first_trial(self, interval: float = 0.1) -> Trial:
        """Waits until the experiment has a trial, and returns the first.

        Args:
            interval: seconds between two questions.
        """
        while not (trials := self.list_trials(max_results=1)):
            self.reload()
            if self.state.is_terminal:
                raise DeterminedError(f"experiment {self.id} ended as {self.state.name} without a trial")
            time.sleep(interval)
        return trials[0]

    def activate(self) -> None:
        """Activates the experiment: its trials are queued again and resume from their last checkpoints."""
        self._steer("activate")

    def pause(self) -> None:
        """Pauses the experiment: its trials save a checkpoint and release their slots."""
        self._steer("pause")

    def cancel(self) -> None:
        """Cancels the experiment: its trials save a checkpoint and end."""
        self._steer("cancel")

    def kill(self) -> None:
        """Ends the experiment immediately; work since the last checkpoint is lost."""
        self._steer("kill")

    def archive(self) -> None:
        """Hides the ended experiment from lists."""
        self._steer("archive")

    def unarchive(self) -> None:
        """Shows the experiment in lists again."""
        self._steer("unarchive")

    def _steer(self, verb: str) -> None:
        lifecycle.steer(self._session, self.id, verb)

    def delete(self) -> None:
        """Deletes the ended experiment with its trials, logs, metrics and checkpoints. This cannot be undone."""
        lifecycle.delete(self._session, self.id)

    def set_name(self, name: str) -> None:
        """Changes the name.

        Args:
            name: the new name.
        """
        self._change(name=name)

    def set_description(self, description: str) -> None:
        """Changes the description.

        Args:
            description: the new description.
        """
        self._change(description=description)

    def set_notes(self, notes: str) -> None:
        """Changes the notes.

        Args:
            notes: Markdown text.
        """
        self._change(notes=notes)

    def _change(self, **values: object) -> None:
        self._set(experiments.change(self._session, self.id, values))

    def add_label(self, label: str) -> None:
        """Adds a label.

        Args:
            label: its text.
        """
        self.labels = sorted(lifecycle.add_label(self._session, self.id, label))

    def remove_label(self, label: str) -> None:
        """Removes a label.

        Args:
            label: its text.
        """
        self.labels = sorted(lifecycle.remove_label(self._session, self.id, label))

    def set_labels(self, labels: Sequence[str]) -> None:
        """Replaces all labels.

        Args:
            labels: the new labels.
        """
        self._change(labels=sorted(set(labels)))

    def move_to_project(self, project_id: int) -> None:
        """Moves the experiment to another project.

        Args:
            project_id: id of the project.
        """
        body = {"experimentId": self.id, "destinationProjectId": project_id}
        self._session.post(f"{experiments.PREFIX}/{self.id}/move", body)
        self.reload()

    def list_trials(
        self,
        sort_by: TrialSortBy | None = None,
        order_by: OrderBy | None = None,
        *,
        max_results: int | None = None,
    ) -> list[Trial]:
        """Returns the trials.

        Args:
            sort_by: column; the id if not given.
            order_by: direction; ascending if not given.
            max_results: at most so many.
        """
        query = {"sortBy": sort_by.value if sort_by else None, "orderBy": order_by.value if order_by else None}
        path = f"{experiments.PREFIX}/{self.id}/trials"
        return [Trial(self._session, each) for each in items(self._session, path, "trials", query, limit=max_results)]

    def get_trials(self, sort_by: TrialSortBy | None = None, order_by: OrderBy | None = None) -> list[Trial]:
        """Same as :meth:`list_trials`, under its older name.

        Args:
            sort_by: see :meth:`list_trials`.
            order_by: see :meth:`list_trials`.
        """
        return self.list_trials(sort_by, order_by)

    def top_n_checkpoints(
        self, limit: int, sort_by: str | CheckpointSortBy | None = None, order_by: OrderBy | None = None
    ) -> list[Checkpoint]:
        """Returns the best checkpoints of all trials.

        Args:
            limit: at most so many.
            sort_by: see :meth:`list_checkpoints`.
            order_by: see :meth:`list_checkpoints`.
        """
        return self.list_checkpoints(sort_by, order_by, max_results=limit)

    def outputs(self) -> list[TrialOutputs]:
        """Returns the files that the scripts of its trials wrote into ``outputs``, one entry for each trial."""
        return [TrialOutputs(self._session, each) for each in outputs.of_experiment(self._session, self.id)]

    def download_code(self, output_dir: str | os.PathLike[str] | None = None) -> str:
        """Writes the context as ``experiment_ID_model_def.tgz``.

        Args:
            output_dir: folder of the file; the working folder if not given.

        Returns:
            The path of the file.
        """
        folder = os.fspath(output_dir or ".")
        os.makedirs(folder, exist_ok=True)
        data = base64.b64decode(lifecycle.model_definition(self._session, self.id))
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            archive.getmembers()  # an archive that cannot be read fails here, not at its user
        path = os.path.join(folder, f"experiment_{self.id}_model_def.tgz")
        with open(path, "wb") as file:
            file.write(data)
        return path
