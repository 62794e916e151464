"""A task of the first user. It leaves secrets wherever tasks store data, prints their locations, and waits to be
killed."""

import json
import os
import socket
import time
from pathlib import Path

import determined as det

info = det.get_cluster_info()
assert info is not None
assert info.trial is not None
for place in ("/dev/shm/secret", "/tmp/secret", os.path.join(os.environ["HOME"], "secret")):
    Path(place).write_text("secret of ada")
listener = socket.socket(socket.AF_UNIX)
listener.bind(os.path.join(os.environ["DET_RUN_DIR"], "secret.sock"))
listener.listen()
with det.core.init() as core:
    metadata = {"steps_completed": 1}
    with core.checkpoint.store_path(metadata) as (path, uuid):
        (path / "weights").write_text("secret of ada")
    print("SECRET of ada", flush=True)
    print(
        "VICTIM",
        json.dumps(
            {
                "uuid": uuid,
                "trial": info.trial.trial_id,
                "task": info.task_id,
                "experiment": info.trial.experiment_id,
                "uid": os.getuid(),
                "allocation": info.allocation_id,
            }
        ),
        flush=True,
    )
    while not core.preempt.should_preempt():
        time.sleep(0.2)
