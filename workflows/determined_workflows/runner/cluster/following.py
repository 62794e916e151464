"""Follows the experiment of a grid: prints what its trials do and fetches their outputs as they end."""

import os
import shlex
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from determined.client import checkpoints, experiments
from determined.client.session import Session
from determined.errors import MasterUnreachable, NotFound
from determined.experimental.client import (
    Checkpoint,
    CheckpointSortBy,
    Experiment,
    ExperimentState,
    OrderBy,
    Trial,
    TrialState,
)
from determined_workflows.runner.cluster.record import FetchedTask, Record
from determined_workflows.runner.console import Console
from determined_workflows.runner.task_files import FAILED, FINISHED, TaskFiles, read_mapping, read_stat

POLL_SECONDS = 1.0
WAITING = "waiting"


class Follower:
    """Follows one experiment until it ends. ``record`` says which, and is updated in ``output``."""

    def __init__(self, session: Session, record: Record, output: Path, lines: Console) -> None:
        self._session = session
        self._record = record
        self._output = output
        self._lines = lines
        self._states: dict[str, TrialState] = {}
        self._last_state: ExperimentState | None = None
        self._failed: list[str] = []
        self._is_lost = False

    def follow(self) -> int:
        """Returns 0 if all commands have finished, else 1. Waits for a master that does not answer."""
        while True:
            try:
                experiment = self._look()
            except MasterUnreachable as error:
                if not self._is_lost:
                    self._lines.say(f"{error}; waiting for it")
                self._is_lost = True
            else:
                self._is_lost = False
                if experiment.state.is_terminal:
                    return self._close(experiment)
            self._lines.tick()
            time.sleep(POLL_SECONDS)

    def _look(self) -> Experiment:
        # The state comes first: of an experiment that has ended, all trials have ended.
        experiment = Experiment(self._session, experiments.get(self._session, self._record.experiment))
        if experiment.state is not self._last_state:
            self._say_state(experiment.state)
            self._last_state = experiment.state
        for trial in experiment.list_trials():
            name = str(trial.hparams.get("_name"))
            if trial.state is self._states.get(name):
                continue
            if trial.state.is_terminal:
                self._fetch(trial, name)
            elif name not in self._states:
                self._say_event("START", trial, name)
            self._states[name] = trial.state
        self._lines.progress.running = sum(state is TrialState.RUNNING for state in self._states.values())
        return experiment

    def _say_state(self, state: ExperimentState) -> None:
        number = self._record.experiment
        if state is ExperimentState.PAUSED:
            self._lines.say(f"Experiment {number} is paused; `det experiment activate {number}` continues it.")
        elif self._last_state is ExperimentState.PAUSED:
            self._lines.say(f"Experiment {number} goes on.")

    def _say_event(self, word: str, trial: Trial, name: str, reason: str = "") -> None:
        index = self._record.tasks.index(name) + 1 if name in self._record.tasks else 0
        where = shlex.quote(str(self._output / name))
        why = f": {reason}" if reason else ""
        self._lines.say(f"{word:<8}trial: {trial.id}, {index:2d}/{len(self._record.tasks):2d}, {where}{why}")

    def _fetch(self, trial: Trial, name: str) -> None:
        """Fetches the newest checkpoint of a trial that has ended."""
        stored = trial.list_checkpoints(CheckpointSortBy.BATCH_NUMBER, OrderBy.DESCENDING, max_results=1)
        if not stored:
            self._fail(trial, name, f"it has stored nothing; `det trial logs {trial.id}` shows why")
            return
        earlier = self._record.fetched.get(name)
        if earlier is None or earlier.checkpoint != stored[0].uuid:  # else it was fetched before this process attached
            fetch(self._session, stored[0].uuid, name, self._output)
        states = read_stat(self._output / name / "stat")
        self._record.fetched[name] = FetchedTask(stored[0].uuid, states)
        self._record.write(self._output)
        failed = [command for command, state in states.items() if state == FAILED]
        if failed:
            self._fail(trial, name, f"{failed[0]} failed")
        elif trial.state is not TrialState.COMPLETED or set(states.values()) != {FINISHED}:
            self._fail(trial, name, f"its trial is {trial.state.name.lower()}; `det trial logs {trial.id}` shows why")
        else:
            self._lines.progress.finished += 1
            if self._lines.is_verbose:
                self._say_event("SUCCEED", trial, name)

    def _fail(self, trial: Trial, name: str, reason: str) -> None:
        self._lines.progress.failed += 1
        self._say_event("FAIL", trial, name, reason)
        self._failed.append(str(self._output / name))

    def _close(self, experiment: Experiment) -> int:
        self._record.is_over = True
        self._record.write(self._output)
        self._lines.end_progress()
        missing = [name for name in self._record.tasks if name not in self._states]
        if missing:
            self._lines.summary("Not started", [str(self._output / name) for name in missing])
        if self._failed:
            self._lines.summary("Failed", self._failed)
        if experiment.state is not ExperimentState.COMPLETED:
            self._lines.say(f"Experiment {experiment.id} is {experiment.state.name.lower()}.")
        if self._failed or missing:
            return 1
        self._lines.say("No task failed.")
        return 0


def fetch(session: Session, uuid: str, name: str, output: Path) -> None:
    """Puts the files of a stored task into ``output/name``. Files of earlier runs are kept; ``stat`` comes last.

    Raises StorageError, or OSError if the output cannot be written.
    """
    output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=output) as draft:
        stored = Path(Checkpoint(session, checkpoints.get(session, uuid)).download(draft), name)
        if not (stored / "stat").is_file():
            raise NotFound(f"checkpoint {uuid} has no files of the task {name}")
        _write_as_yaml(stored)
        files = sorted((path for path in stored.rglob("*") if path.is_file()), key=lambda path: path == stored / "stat")
        for path in files:
            target = output / name / path.relative_to(stored)
            target.parent.mkdir(parents=True, exist_ok=True)
            os.replace(path, target)


def _write_as_yaml(folder: Path) -> None:
    """Rewrites ``param`` and ``stat`` in the form that a run on this machine gives them."""
    files = TaskFiles(folder)
    param: Mapping[str, object] = read_mapping(files.param)
    scripts = param.get("_scripts")
    files.write_param(
        {key: value for key, value in param.items() if key != "_scripts"}, scripts if isinstance(scripts, dict) else {}
    )
    files.load()
    files.write_stat()


def show_status(session: Session, record: Record) -> None:
    """Prints the state of each task and of the experiment, once."""
    experiment = Experiment(session, experiments.get(session, record.experiment))
    trials = {str(trial.hparams.get("_name")): trial for trial in experiment.list_trials()}
    states = {name: trials[name].state.name.lower() if name in trials else WAITING for name in record.tasks}
    for name, state in states.items():
        print(f"{state:<12}{name}" + (f"  (trial {trials[name].id})" if name in trials else ""))
    counts = ", ".join(f"{count} {state}" for state, count in sorted(Counter(states.values()).items()))
    print(f"Experiment {experiment.id} of {record.master}: {experiment.state.name.lower()}")
    print(f"Tasks: {len(states)} ({counts})")
