"""Creates experiments for the page: quick ones of a simulated training, and the real digits."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from tests.support.live_cluster import LiveCluster
from tests.support.live_models import ROOT
from tests.support.live_trials import Experiment

from determined.client import submissions
from determined.context import pack

QUICK = Path(__file__).parent / "quick"
DIGITS = ROOT / "examples" / "digits"
VALUES = {"rate": 0.1, "width": 64, "steps": 20, "pace": 0.0, "fails_at": 0}
FOREVER = {"steps": 100_000, "pace": 0.05}
"""Hyperparameters of a run that a test ends."""


def quick(
    cluster: LiveCluster,
    name: str,
    *,
    activate: bool = True,
    context: Path = QUICK,
    entry: str = "quick.py",
    **more: Any,
) -> Experiment:
    """Creates a quick experiment. ``more``: parts of the configuration; its ``hyperparameters`` extend the default
    ones."""
    values = VALUES | dict(more.pop("hyperparameters", {}))
    config = {
        "name": name,
        "entrypoint": f"python3 {entry}",
        "searcher": {"name": "single", "metric": "validation_loss"},
        "max_restarts": 0,
        **more,
        "hyperparameters": values,
    }
    return submit(cluster, yaml.safe_dump(config, sort_keys=False, allow_unicode=True), context, activate=activate)


def forever(cluster: LiveCluster, name: str, **more: Any) -> Experiment:
    return quick(cluster, name, hyperparameters=FOREVER, **more)


def failing(cluster: LiveCluster, name: str, **more: Any) -> Experiment:
    return quick(cluster, name, hyperparameters={"fails_at": 12}, **more)


def grid(cluster: LiveCluster, name: str, *, rates: Sequence[float], widths: Sequence[int], **more: Any) -> Experiment:
    """Creates a grid search with one trial for each pair."""
    searcher = {"name": "grid", "metric": "validation_loss", "max_concurrent_trials": 4}
    searched: Mapping[str, Any] = {
        "rate": {"type": "categorical", "vals": list(rates)},
        "width": {"type": "categorical", "vals": list(widths)},
    }
    return quick(cluster, name, searcher=searcher, hyperparameters=searched, **more)


def adaptive(cluster: LiveCluster, name: str, *, trials: int, **more: Any) -> Experiment:
    """Creates an adaptive search with rungs at 10 and 40 steps."""
    searcher = {"name": "adaptive_asha", "metric": "validation_loss", "time_metric": "batches", "max_time": 40}
    searcher |= {"divisor": 4, "max_rungs": 2, "max_trials": trials, "max_concurrent_trials": 2}
    searched: Mapping[str, Any] = {
        "rate": {"type": "double", "minval": 0.01, "maxval": 0.3},
        "width": {"type": "categorical", "vals": [32, 64, 128]},
        "steps": 40,
    }
    seed = {"experiment_seed": 7}
    return quick(cluster, name, searcher=searcher, hyperparameters=searched, reproducibility=seed, **more)


def digits(cluster: LiveCluster, *, batches: int, **more: Any) -> Experiment:
    """Creates the example, trained for this number of batches."""
    config = yaml.safe_load((DIGITS / "const.yaml").read_text())
    config["searcher"]["max_length"] = {"batches": batches}
    config["hyperparameters"] |= {"batches": batches, **more.pop("hyperparameters", {})}
    return submit(cluster, yaml.safe_dump(config | more, sort_keys=False), DIGITS)


def submit(cluster: LiveCluster, config: str, context: Path, *, activate: bool = True) -> Experiment:
    packed = pack(context).without_code()  # that of this repository differs from run to run
    body = {"config": config, "configName": "config.yaml", "activate": activate}
    answer = submissions.create(cluster.session, body, packed)
    return Experiment(cluster, int(answer["experiment"]["id"]))
