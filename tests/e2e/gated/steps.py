"""Runs three steps without torch, with a gate ``step-NUMBER-STEP`` before each, and resumes from a checkpoint."""

import json

from gates import gate

import determined
from determined import core

STEPS = 3


def main():
    info = determined.get_cluster_info()
    number = info.trial.hparams["number"]
    with core.init() as context:
        for step in range(restored(context, info.latest_checkpoint), STEPS):
            gate(f"step-{number}-{step}", context)
            context.train.report_training_metrics(step + 1, {"loss": 1 / (step + 1), "not a number": float("nan")})
            if context.preempt.should_preempt():
                with context.checkpoint.store_path({"steps_completed": step + 1}) as (path, _):
                    (path / "state.json").write_text(json.dumps({"steps": step + 1}))
                return
        context.train.report_validation_metrics(STEPS, {"loss": float(number)})


def restored(context, uuid):
    if uuid is None:
        return 0
    with context.checkpoint.restore_path(uuid) as path:
        return json.loads((path / "state.json").read_text())["steps"]


if __name__ == "__main__":
    main()
