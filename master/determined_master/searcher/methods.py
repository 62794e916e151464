"""Factory of search methods."""

from collections.abc import Mapping
from typing import Any

from determined.config.search_plan import HALVING
from determined.searcher.sampling import grid_point, grid_size, listed_point, sample
from determined_master.searcher.adaptive_asha import AdaptiveAsha
from determined_master.searcher.method import Randomness, SearchMethod
from determined_master.searcher.queue import QueueSearch


def make(config: Mapping[str, Any], snapshot: dict[str, Any] | None) -> SearchMethod:
    """Creates the search method of a fully defaulted configuration, from ``snapshot`` if there is one. Raises KeyError
    for a searcher that validation should have refused."""
    searcher = config["searcher"]
    search: QueueSearch | AdaptiveAsha
    if searcher["name"] in HALVING:
        search = AdaptiveAsha(config)
    else:
        randomness = Randomness.seeded(config["reproducibility"]["experiment_seed"])
        search = _KINDS[searcher["name"]](searcher, config["hyperparameters"], randomness)
    if snapshot:
        search.restore(snapshot)
    return search


def _single(searcher: dict[str, Any], hparams: dict[str, Any], randomness: Randomness) -> QueueSearch:
    return QueueSearch(lambda s: sample(hparams, s.randomness.rng), wanted=1, concurrent=1, randomness=randomness)


def _random(searcher: dict[str, Any], hparams: dict[str, Any], randomness: Randomness) -> QueueSearch:
    return QueueSearch(
        lambda s: sample(hparams, s.randomness.rng),
        wanted=searcher["max_trials"],
        concurrent=searcher.get("max_concurrent_trials") or 0,
        randomness=randomness,
        replace_invalid=True,
    )


def _grid(searcher: dict[str, Any], hparams: dict[str, Any], randomness: Randomness) -> QueueSearch:
    size = grid_size(hparams)
    # From the end of the grid, as in the older product. The snapshot's ``created`` is the only index.
    return QueueSearch(
        lambda s: grid_point(hparams, size - 1 - s.created) if s.created < size else None,
        wanted=size,
        concurrent=searcher.get("max_concurrent_trials") or 0,
        randomness=randomness,
    )


def _list(searcher: dict[str, Any], hparams: dict[str, Any], randomness: Randomness) -> QueueSearch:
    trials = searcher["trials"]
    return QueueSearch(
        lambda s: listed_point(hparams, trials[s.created]) if s.created < len(trials) else None,
        wanted=len(trials),
        concurrent=searcher.get("max_concurrent_trials") or 0,
        randomness=randomness,
    )


_KINDS = {"single": _single, "random": _random, "grid": _grid, "list": _list}
