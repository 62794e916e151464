"""``status`` of a grid that runs on the cluster."""

from collections import Counter

from determined.client import experiments
from determined.client.session import Session
from determined.experimental.client import Experiment
from determined_workflows.runner.cluster.record import Record

WAITING = "waiting"


def show(session: Session, record: Record) -> None:
    """Prints one line for each task, and a summary."""
    experiment = Experiment(session, experiments.get(session, record.experiment))
    trials = {str(trial.hparams.get("_name")): trial for trial in experiment.list_trials()}
    states = {name: trials[name].state.name.lower() if name in trials else WAITING for name in record.tasks}
    for name, state in states.items():
        print(f"{state:<12}{name}" + (f"  (trial {trials[name].id})" if name in trials else ""))
    counts = ", ".join(f"{count} {state}" for state, count in sorted(Counter(states.values()).items()))
    print(f"Experiment {experiment.id} of {record.master}: {experiment.state.name.lower()}")
    print(f"Tasks: {len(states)} ({counts})")
