"""Composes, checks and prints a configuration, without training.

Example: ``check_config.py +experiment=train_mLSTM7B_slimpajama6b.yaml lr=1e-3``
"""

import argparse
import sys
from pathlib import Path

from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

PROJECT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(PROJECT))

from mlstm.config_checks import checked  # noqa: E402  # the path is set above
from mlstm.config_schema import register  # noqa: E402
from mlstm.errors import USER_ERRORS, explain  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("overrides", nargs="*", help="as on the command line of train_with_hydra.py")
    arguments = parser.parse_args()
    register()
    configs = PROJECT / "configs"
    try:
        with initialize_config_dir(str(configs), version_base="1.3"):
            cfg = compose("config", arguments.overrides)
        checked(cfg)
        print(OmegaConf.to_yaml(cfg, resolve=True), end="")
    except USER_ERRORS as error:
        sys.exit(f"error: {explain(error, configs)}")


if __name__ == "__main__":
    main()
