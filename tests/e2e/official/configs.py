"""Configurations of the trials of these tests."""

from pathlib import Path
from typing import Any

from tests.support.official_client import OFFICIAL

CONTEXTS = Path(__file__).resolve().parent / "contexts"
SCRIPT, TRIAL_CLASS = CONTEXTS / "script", CONTEXTS / "trial_class"
ENDLESS = 100_000


def script(name: str, *, steps: int = 6, seconds: float = 0.0, official: bool = True, **more: Any) -> dict[str, Any]:
    return _config(name, official) | {
        "entrypoint": "python3 run.py",
        "searcher": {"name": "single", "metric": "loss"},
        "hyperparameters": {"steps": steps, "seconds": seconds},
        **more,
    }


def trial_class(name: str, *, batches: int, seconds: float = 0.0, official: bool = True, **more: Any) -> dict[str, Any]:
    return _config(name, official) | {
        "entrypoint": "model_def:Line",
        "searcher": {"name": "single", "metric": "loss", "max_length": {"batches": batches}},
        "hyperparameters": {"seconds": seconds},
        "scheduling_unit": 1,
        **more,
    }


def _config(name: str, official: bool) -> dict[str, Any]:
    environment = {"image": f"venv:{OFFICIAL}"} if official else {}
    return {"name": name, "max_restarts": 0, "environment": environment}
