"""A task that reads its own experiment with the SDK, and as a user starts another experiment from its folder."""

import os

import determined as det
from determined.errors import Forbidden
from determined.experimental import client

info = det.get_cluster_info()
assert info is not None
assert info.trial is not None
own = client.get_experiment(info.trial.experiment_id)
with det.core.init() as context:
    if own.name == "parent":
        print("runs for", client.whoami().username, flush=True)
        try:
            own.pause()
        except Forbidden as error:
            print("refused:", error, flush=True)
        client.login(user="admin", password=os.environ["PASSWORD_OF_ADMIN"])
        child = client.create_experiment({**own.config, "name": "child", "environment": {}}, ".")
        print("created", child.id, flush=True)
        print("the child ended as", child.wait(interval=0.2).name, flush=True)
    context.train.report_validation_metrics(steps_completed=1, metrics={"loss": 1.0})
