"""A small Hydra project: schemas in the script, config groups, an experiment, a launcher and checkpoints of its own."""

from pathlib import Path

TRAIN = """
import json
from dataclasses import dataclass, field
from pathlib import Path

import hydra
from hydra.core.config_store import ConfigStore
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig


@dataclass
class Trainer:
    gradient_accumulation_steps: int = 1
    steps: int = 3
    lr: float = 0.1


@dataclass
class Schema:
    task_name: str = "tiny"
    trainer: Trainer = field(default_factory=Trainer)
    model: dict = field(default_factory=dict)
    first: str = "1"
    second: str = "2"
    fail_at: int = -1
    resume_from_folder: str | None = None
    checkpoint_step: int = -1


ConfigStore.instance().store(name="config_schema", node=Schema)


@hydra.main(config_path="../configs", config_name="config", version_base="1.3")
def main(cfg: DictConfig) -> float:
    folder = Path(HydraConfig.get().runtime.output_dir)
    begin = 0
    if cfg.resume_from_folder:
        steps = [int(each.name[5:]) for each in Path(cfg.resume_from_folder, "checkpoints").glob("step_*")]
        begin = max(steps) if cfg.checkpoint_step == -1 else cfg.checkpoint_step
    print(f"begins at {begin} with lr {cfg.trainer.lr} and width {cfg.model.width}")
    for step in range(begin, cfg.trainer.steps):
        if step == cfg.fail_at:
            raise ValueError(f"no luck with step {step}")
        (folder / "checkpoints" / f"step_{step + 1}").mkdir(parents=True)
    (folder / "result.json").write_text(json.dumps({"final_loss": cfg.trainer.lr, "steps": cfg.trainer.steps}))
    return cfg.trainer.lr


if __name__ == "__main__":
    main()
"""
FILES = {
    "scripts/train.py": TRAIN,
    "configs/config.yaml": """\
defaults:
  - config_schema
  - model: small
  - _self_

task_name: digits
trainer:
  lr: 0.2
""",
    "configs/model/small.yaml": "width: 8\ntype: mlp\n",
    "configs/model/large.yaml": "width: 80\ntype: mlp\n",
    "configs/experiment/large.yaml": """\
# @package _global_
defaults:
  - override /model: large
  - _self_

trainer:
  steps: 4
""",
    "configs/experiment/misspelt.yaml": """\
# @package _global_
trainer:
  gradient_accumulate_steps: 4
""",
    "configs/experiment/lost.yaml": """\
# @package _global_
defaults:
  - override /model: huge
""",
    "configs/experiment/sweep.yaml": """\
# @package _global_
hydra:
  mode: MULTIRUN
  sweeper:
    params:
      trainer.lr: 1,2
      model: choice(small,large)
""",
    "configs/hydra/launcher/slurm_launcher.yaml": """\
# @package _global_
defaults:
  - override /hydra/launcher: submitit_slurm

hydra:
  launcher:
    _target_: hydra_plugins.hydra_submitit_launcher.submitit_launcher.SlurmLauncher
    gpus_per_node: 2
    nodes: 2
    cpus_per_task: 28
    partition: compute
    timeout_min: 90
    setup:
      - gpu-bind=none
      - time=2-00:00:00
      - exclusive
      - output=${hydra.sweep.dir}/.submitit/%j.out
      - export NCCL_DEBUG=WARN
""",
}


def write(folder: Path) -> Path:
    """Writes the project and returns its folder."""
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder
