"""The minimal work of a pause: one step, the trainer's own save, and the interpreter's exit.

``step_save_exit.py FOLDER``, with the trial on the path, prints ``ready: `` after its setup, and begins when the file
FOLDER/go exists. The checkpoint is written to a folder below FOLDER. Under a launcher each worker does the same.
"""

import sys
import time
from pathlib import Path

import torch
from pause_trial import PauseTrial

from determined import pytorch
from determined.pytorch._checkpointer import Checkpointer
from determined.pytorch._state import TrainingState


def main(folder: str) -> None:
    config = {"checkpoint_storage": {"type": "directory", "container_path": folder}}
    with pytorch.init(hparams={"global_batch_size": 1}, exp_conf=config) as context:
        trial = PauseTrial(context)
        state = TrainingState(context, {})
        keeper = Checkpointer(trial, context, {}, state)
        batch = [torch.ones(1, 1000)]
        trial.train_batch(batch, 0, 0)  # the first step allocates memory that later ones reuse
        context.distributed.allgather(None)
        if context.distributed.rank == 0:
            print("ready: ", flush=True)
        go = Path(folder, "go")
        while not go.exists():
            time.sleep(0.001)
        trial.train_batch(batch, 0, 1)
        state.progress.steps = 2
        keeper.save()


if __name__ == "__main__":
    main(sys.argv[1])
