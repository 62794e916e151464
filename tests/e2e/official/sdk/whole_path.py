"""Creates, waits, reads and downloads with the SDK, and prints the results: ``whole_path.py CONTEXT CONFIG``."""

import json
import sys
from pathlib import Path

from determined.experimental import client

context, config = sys.argv[1:]
experiment = client.create_experiment(config=json.loads(config), model_dir=context)
state = experiment.wait(interval=0.2)
trial = experiment.list_trials()[0]
checkpoint = experiment.top_checkpoint()
target = checkpoint.download()
through_master = checkpoint.download("through-master", mode=client.DownloadMode.MASTER)
read = {
    group: [m.metrics for m in client.stream_trials_metrics([trial.id], group)] for group in ("training", "validation")
}
experiment.add_label("seen")
experiment.set_description("by the SDK")
experiment.archive()
experiment.reload()
print(
    json.dumps(
        {
            "experiment": experiment.id,
            "state": state.name,
            "archived": experiment.archived,
            "labels": sorted(experiment.labels),
            "description": experiment.description,
            "listed": [e.id for e in client.list_experiments()],
            "again": client.get_experiment(experiment.id).state.name,
            "trial": [client.get_trial(trial.id).state.name, trial.hparams, trial.experiment_id],
            "checkpoints": [c.uuid for c in experiment.list_checkpoints()],
            "of_trial": [c.uuid for c in trial.list_checkpoints()],
            "top": checkpoint.uuid,
            "metadata": client.get_checkpoint(checkpoint.uuid).metadata,
            "steps": [Path(folder, "steps").read_text() for folder in (target, through_master)],
            "metrics": read,
            "logs": [line for line in trial.iter_logs() if "library:" in line],
            "me": client.whoami().username,
            "users": sorted(user.username for user in client.list_users()),
            "workspaces": [w.name for w in client.list_workspaces()],
        }
    )
)
