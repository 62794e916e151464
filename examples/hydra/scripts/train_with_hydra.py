"""Trains as the configuration says: ``train_with_hydra.py [key=value …] [group=choice …] [+experiment=name]``."""

import os
import sys
from pathlib import Path

import hydra
from omegaconf import DictConfig

PROJECT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(PROJECT))

from mlstm.config_schema import register  # noqa: E402  # the path is set above
from mlstm.errors import USER_ERRORS, explain  # noqa: E402
from mlstm.slurm_watch import ERROR_FILE  # noqa: E402

register()


@hydra.main(config_path="../configs", config_name="config", version_base="1.3")
def main_train(cfg: DictConfig) -> float | None:
    """Returns the final loss, which sweepers minimize."""
    try:
        from mlstm.run import run  # torch is not needed to compose configurations or to submit jobs

        return run(cfg)
    except Exception as error:
        Path(ERROR_FILE).write_text(f"{type(error).__name__}: {error}\n")
        raise


def main() -> None:
    # Jobs of Slurm import the same package, from whichever folder they were submitted.
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(PROJECT), os.environ.get("PYTHONPATH")]))
    os.environ.setdefault("HYDRA_FULL_ERROR", "1")  # raises the error itself, which is explained here
    try:
        main_train()
    except USER_ERRORS as error:
        sys.exit(f"error: {explain(error, PROJECT / 'configs')}")
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
