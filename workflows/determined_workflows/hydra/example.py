"""The example project that ``det hydra init`` writes: a script with ``@hydra.main`` and its configurations."""

from pathlib import Path

from determined_workflows import example_files

SCRIPT = '''\
"""Trains a line through four points. `python train.py` runs it here, `det hydra run train.py` on the cluster."""

import json
from pathlib import Path

import hydra
from hydra.core.hydra_config import HydraConfig

POINTS = [(0.0, 1.0), (1.0, 3.0), (2.0, 5.0), (3.0, 7.0)]


@hydra.main(config_path="configs", config_name="config", version_base="1.3")
def main(cfg):
    folder = Path(HydraConfig.get().runtime.output_dir)
    weights, begin = {"slope": 0.0, "offset": 0.0}, 0
    if cfg.resume_from_folder:  # set by `det hydra retry`
        saved = Path(cfg.resume_from_folder, "checkpoints")
        steps = sorted(int(path.name.removeprefix("step_")) for path in saved.glob("step_*"))
        begin = steps[-1] if cfg.checkpoint_step == -1 else cfg.checkpoint_step
        weights = json.loads((saved / f"step_{begin}" / "weights.json").read_text())
    loss = 0.0
    for step in range(begin, cfg.trainer.steps):
        if step == cfg.fail_at:
            raise RuntimeError(f"stopped at step {step} by fail_at")
        errors = [weights["slope"] * x + weights["offset"] - y for x, y in POINTS]
        loss = sum(error * error for error in errors) / len(POINTS)
        weights["slope"] -= cfg.optimizer.lr * sum(e * x for e, (x, _) in zip(errors, POINTS)) / len(POINTS)
        weights["offset"] -= cfg.optimizer.lr * sum(errors) / len(POINTS)
        if (step + 1) % cfg.trainer.save_every == 0:
            print(f"step {step + 1} of {cfg.trainer.steps}: loss {loss:.4f}", flush=True)
            checkpoint = folder / "checkpoints" / f"step_{step + 1}"
            checkpoint.mkdir(parents=True)
            (checkpoint / "weights.json").write_text(json.dumps(weights))
    # A job with this file is finished: `det hydra retry` leaves it out.
    (folder / "result.json").write_text(json.dumps({"loss": loss, **weights}))
    return loss


if __name__ == "__main__":
    main()
'''
FILES = {
    "train.py": SCRIPT,
    "configs/config.yaml": """\
defaults:
  - optimizer: slow
  - _self_

task_name: line
trainer:
  steps: 100
  save_every: 25
fail_at: -1  # the step at which the script fails, to try `det hydra retry`

# Set by `det hydra retry`.
resume_from_folder: null
checkpoint_step: -1
""",
    "configs/optimizer/slow.yaml": "lr: 0.01\n",
    "configs/optimizer/fast.yaml": "lr: 0.1\n",
    "configs/experiment/long.yaml": """\
# @package _global_
# det hydra run train.py +experiment=long
defaults:
  - override /optimizer: fast

trainer:
  steps: 200
""",
    "configs/hydra/launcher/slurm_launcher.yaml": """\
# The jobs of `det hydra run --on slurm`; it needs the package hydra-submitit-launcher.
defaults:
  - submitit_slurm

timeout_min: 10
cpus_per_task: 1
""",
}


def init(folder: Path) -> list[Path]:
    """Writes the example and returns its files. Raises Conflict and writes nothing if one of them exists."""
    return example_files.write(folder, FILES)
