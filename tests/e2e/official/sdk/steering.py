"""Steers and reads an experiment with the SDK, and prints the results: ``steering.py CONTEXT CONFIG USER``."""

import json
import sys

from determined.experimental import client

context, config, name = sys.argv[1:]
cluster = client.Determined()
experiment: client.Experiment = cluster.create_experiment(config=json.loads(config), model_dir=context)
trial: client.Trial = experiment.await_first_trial()
while not list(trial.iter_metrics("training")):
    pass  # each call must be answered before the next one
experiment.pause()
try:
    experiment.wait(interval=0.1)
except ValueError as error:
    paused = "paused" in str(error).lower()
experiment.activate()
experiment.set_name("steered")
experiment.set_notes("by the SDK")
experiment.set_labels(["b", "a"])
experiment.remove_label("b")
experiment.reload()
while not (
    stored := experiment.list_checkpoints(sort_by=client.CheckpointSortBy.BATCH_NUMBER, order_by=client.OrderBy.DESC)
):
    pass
checkpoint: client.Checkpoint = trial.top_checkpoint()
training = client.get_checkpoint(checkpoint.uuid).training
experiment.kill()
ended = experiment.wait(interval=0.1)
user: client.User = client.create_user(name, admin=False, password="Some-password1")
user.change_display_name(f"{name} of the SDK")
workspace: client.Workspace = client.get_workspace("Uncategorized")
project: client.Project = workspace.list_projects()[0]
reports = [
    list(stream([trial.id]))
    for stream in (client.stream_trials_training_metrics, client.stream_trials_validation_metrics)
]
first: client.TrialMetrics = next(iter(client.iter_trials_metrics([trial.id], "training")))
descending = client.list_experiments(sort_by=client.ExperimentSortBy.ID, order_by=client.OrderBy.DESC)
try:
    client.get_experiment(10**6)
    missing = False
except Exception:
    missing = True
print(
    json.dumps(
        {
            "paused": paused,
            "ended": ended is client.ExperimentState.CANCELED,
            "trial": [t.state.name for t in experiment.list_trials(sort_by=client.TrialSortBy.START_TIME)],
            "killed": client.get_trial(trial.id).state == client.TrialState.CANCELED,
            "name": experiment.name,
            "labels": sorted(experiment.labels),
            "stored": bool(stored) and stored[0].state == client.CheckpointState.COMPLETED,
            "training": training is not None and training.trial_id == trial.id,
            "user": [client.get_user_by_name(name).display_name, client.get_user_by_id(user.user_id).username],
            "me": client.get_session_username(),
            "places": [workspace.name, project.name],
            "reports": [len(reports[0]) > 0, len(reports[1]) >= 0],
            "first": [first.trial_id == trial.id, first.steps_completed, first.group],
            "newest first": descending[0].id == max(e.id for e in descending),
            "missing": missing,
        }
    )
)
