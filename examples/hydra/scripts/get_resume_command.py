"""Prints the command that goes on with a run from a checkpoint, rebuilt from the run's ``.hydra/overrides.yaml``.

Example: ``get_resume_command.py --resume_from_folder outputs/<task>/<run> --new_overrides="num_train_steps=80"``
"""

import argparse
import re
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException
from omegaconf import OmegaConf

PROJECT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(PROJECT))

from mlstm.checkpoints import find_checkpoint  # noqa: E402  # the path is set above
from mlstm.errors import ConfigError  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--resume_from_folder", required=True, type=Path, help="the folder of the run")
    parser.add_argument("--checkpoint_step", type=int, default=-1, help="the checkpoint's step; -1 is the newest")
    parser.add_argument("--use_slurm", action="store_true", help="go on as a job of Slurm")
    parser.add_argument("--new_overrides", default="", help="replace those of the run that have the same key")
    arguments = parser.parse_args()
    folder = arguments.resume_from_folder.absolute()
    try:
        words = resume_overrides(folder, arguments.checkpoint_step, shlex.split(arguments.new_overrides))
    except (ConfigError, HydraException) as error:
        sys.exit(f"error: {error}")
    if arguments.use_slurm:
        words = ["--multirun", "hydra/launcher=slurm_launcher", *words]
    print(shlex.join(["python", str(PROJECT / "scripts" / "train_with_hydra.py"), *words]))


def resume_overrides(folder: Path, step: int, new: Sequence[str]) -> list[str]:
    """Returns the overrides of a run without those that ``new`` or the resume replaces, and these.

    Raises:
        ConfigError: the folder is not that of a run, or has no such checkpoint.
        HydraException: an override cannot be read.
    """
    saved = folder / ".hydra" / "overrides.yaml"
    if not saved.is_file():
        raise ConfigError(f"{folder} is not the folder of a run: it has no .hydra/overrides.yaml")
    config = OmegaConf.load(folder / ".hydra" / "config.yaml")
    find_checkpoint(folder, str(OmegaConf.select(config, "checkpointing.folder", default="checkpoints")), step)
    added = [*new, f"resume_from_folder={_quoted(str(folder))}", f"checkpoint_step={step}"]
    replaced = {_key(each) for each in added}
    return [*(str(each) for each in OmegaConf.load(saved) if _key(str(each)) not in replaced), *added]


def _key(override: str) -> str:
    return str(OverridesParser.create().parse_override(override).key_or_group)


def _quoted(value: str) -> str:
    """Hydra's grammar takes these characters without quotes."""
    if re.fullmatch(r"[\w/.:+-]+", value, re.ASCII):
        return value
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


if __name__ == "__main__":
    main()
