"""Models that the end-to-end tests train, as contexts with gates, and their configurations."""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from tests.support.compiler import IDLE_COMPILER
from tests.support.warm_fork_server import WARM

ROOT = Path(__file__).parents[2]
E2E = ROOT / "tests" / "e2e"
# Every run has the same number of threads: otherwise sums are ordered differently and the hashes differ.
ONE_THREAD = ["OMP_NUM_THREADS=1", "MKL_NUM_THREADS=1"]


@dataclass(frozen=True)
class Model:
    """A model to train: its files, the class in ``model_def``, and the changes to its own configuration."""

    name: str
    files: tuple[Path, ...]
    trial_class: str
    config: dict[str, Any]
    steps: int
    validation_steps: tuple[int, ...]

    def configured(
        self, gates: Path | None = None, *, variables: Sequence[str] = (), is_warm: bool = True, **changes: Any
    ) -> str:
        """Returns the configuration as YAML.

        ``gates``: the folder in which a test closes gates. ``is_warm``: on an agent with torch, see
        ``warm_fork_server.py``, the trial does not import it again.
        """
        own = self.config.get("environment", {}).get("environment_variables", [])
        every = [*own, *ONE_THREAD, f"PYTHONPATH={IDLE_COMPILER}", *([f"{WARM}=1"] if is_warm else [])]
        every += [*([f"GATES={gates}"] if gates else []), *variables]
        config = self.config | {"environment": {"environment_variables": every}} | changes
        return yaml.safe_dump(config, sort_keys=False)

    def context(self, folder: Path, **more: str) -> Path:
        """Writes the context and returns its folder. ``more``: further files; in a name without a dot, ``__`` becomes
        ``.`` and ``_`` becomes ``-``."""
        folder.mkdir(parents=True, exist_ok=True)
        for file in (*self.files, E2E / "gated" / "gates.py"):
            shutil.copy(file, folder)
        if self.trial_class:
            lines = [f"from model_def import {self.trial_class}", "", f"Trial = gated({self.trial_class})"]
            (folder / "trial.py").write_text("\n".join(["from gates import gated", *lines, ""]))
        for name, text in more.items():
            (folder / (name if "." in name else name.replace("__", ".").replace("_", "-"))).write_text(text)
        return folder


def _digits() -> Model:
    folder = ROOT / "examples" / "digits"
    config = yaml.safe_load((folder / "const.yaml").read_text())
    steps = 40  # an epoch has 32 batches
    config["searcher"]["max_length"] = {"batches": steps}
    config["hyperparameters"] |= {"batches": steps, "hidden": 32}
    config |= {
        "entrypoint": "trial:Trial",
        "scheduling_unit": 1,
        "min_validation_period": {"batches": 12},
        "min_checkpoint_period": {"batches": 5},
        "max_restarts": 3,
    }
    files = (folder / "model_def.py", folder / "digits_data.py")
    return Model("digits", files, "DigitsTrial", config, steps, (12, 24, 36, 40))


def _foreign() -> Model:
    config = yaml.safe_load((E2E / "foreign" / "config.yaml").read_text())
    config["entrypoint"] = "trial:Trial"
    return Model(
        "foreign", (E2E / "foreign" / "model_def.py",), "ForeignTrial", config, 45, (7, 14, 21, 28, 35, 42, 45)
    )


def _script() -> Model:
    """Returns a Core API script that does not import torch, for tests in which the training itself does not matter."""
    config = {
        "name": "script",
        "entrypoint": "python3 steps.py",
        "searcher": {"name": "single", "metric": "loss"},
        "hyperparameters": {"number": 0},
        "max_restarts": 0,
    }
    return Model("script", (E2E / "gated" / "steps.py",), "", config, 3, (3,))


def _keras() -> Model:
    """Returns a Keras model with a gate before each batch that reports every step, like the models of the other trials."""
    folder = ROOT / "examples" / "digits"
    config = yaml.safe_load((folder / "keras.yaml").read_text())
    config["searcher"]["max_length"] = {"batches": 40}
    config |= {"entrypoint": "keras_trial:Trial", "scheduling_unit": 1, "min_validation_period": {"batches": 12}}
    config |= {"min_checkpoint_period": {"batches": 5}, "max_restarts": 3}
    files = (folder / "keras_def.py", folder / "digits_data.py", E2E / "gated" / "keras_trial.py")
    return Model("keras", files, "", config, 40, (12, 24, 36, 40))


DIGITS, FOREIGN, SCRIPT, KERAS = _digits(), _foreign(), _script(), _keras()
MODELS = {model.name: model for model in (DIGITS, FOREIGN, SCRIPT, KERAS)}
