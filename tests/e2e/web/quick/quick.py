"""A simulated training over the Core API, without torch. Its reports depend only on its hyperparameters."""

import json
import math
import random
import sys
import time

import determined
from determined import core


def main():
    info = determined.get_cluster_info()
    hparams = info.trial.hparams
    draws = random.Random(hparams["rate"])
    with core.init() as context:
        step = restored(context, info.latest_checkpoint)
        print(f"going on from step {step}" if step else "from the start", flush=True)
        while step < hparams["steps"]:
            step += 1
            time.sleep(hparams["pace"])  # simulates the work of a step
            loss = 0.2 + 2 * math.exp(-step * hparams["rate"]) + draws.uniform(0, 0.05)
            context.train.report_training_metrics(step, {"loss": loss, "accuracy": 1 - loss / 3})
            context.train.report_progress(step / hparams["steps"])
            if step % 10 == 0:
                print(f"step {step}: loss {loss:.4f}", flush=True)
                context.train.report_validation_metrics(
                    step, {"validation_loss": loss + hparams["width"] / 500, "accuracy": 0.97 - loss / 3}
                )
            if step == hparams["fails_at"]:
                print("WARNING: this batch looks odd", file=sys.stderr, flush=True)
                raise RuntimeError(f"the batch of step {step} cannot be read")
            if context.preempt.should_preempt():
                save(context, step)
                return
        save(context, step)


def save(context, step):
    with context.checkpoint.store_path({"steps_completed": step}) as (path, _):
        (path / "state.json").write_text(json.dumps({"step": step}))


def restored(context, uuid):
    if uuid is None:
        return 0
    with context.checkpoint.restore_path(uuid) as path:
        return json.loads((path / "state.json").read_text())["step"]


if __name__ == "__main__":
    main()
