"""The folder of a run: the experiment file, the result, and whether another run is already in it."""

import json
import os
import shutil
from pathlib import Path

from hydra.core.hydra_config import HydraConfig

from mlstm.checkpoints import find_checkpoint, saved_steps
from mlstm.config_schema import Config
from mlstm.errors import ConfigError

RESULT = "result.json"


def prepare_folder(config: Config, run_folder: Path) -> Path | None:
    """Copies the experiment file into the folder and returns the file of the checkpoint to resume from, or None.

    Raises:
        ConfigError: another run is in the folder already, or there is no such checkpoint.
    """
    own_steps = saved_steps(run_folder / config.checkpointing.folder)
    if own_steps and int(os.environ.get("SLURM_RESTART_COUNT", "0")) > 0:
        return find_checkpoint(run_folder, config.checkpointing.folder, -1)
    resume_from = None
    if config.resume_from_folder is not None:
        resume_from = (Path(HydraConfig.get().runtime.cwd) / config.resume_from_folder).resolve()
    if resume_from != run_folder.resolve() and (own_steps or (run_folder / RESULT).exists()):
        raise ConfigError(
            f"{run_folder} holds another run. Name it by resume_from_folder to go on in it, or set another "
            "hydra.run.dir"
        )
    if is_first_task():
        _copy_experiment(run_folder)
    if resume_from is None:
        return None
    return find_checkpoint(resume_from, config.checkpointing.folder, config.checkpoint_step)


def is_first_task() -> bool:
    """False in all but one of the processes that a launcher or Slurm started with the same folder."""
    return os.environ.get("RANK", "0") == "0" and os.environ.get("SLURM_PROCID", "0") == "0"


def write_result(run_folder: Path, final_loss: float, steps: int) -> None:
    """Writes the last file of a run: one that has it is finished."""
    part = run_folder / f".{RESULT}.part"
    part.write_text(json.dumps({"final_loss": final_loss, "steps": steps}) + "\n")
    part.rename(run_folder / RESULT)


def _copy_experiment(run_folder: Path) -> None:
    name = HydraConfig.get().runtime.choices.get("experiment")
    if name is None:
        return
    for source in HydraConfig.get().runtime.config_sources:
        path = Path(source.path) / "experiment" / f"{name.removesuffix('.yaml')}.yaml"
        if source.schema == "file" and path.is_file():
            shutil.copy(path, run_folder / path.name)
