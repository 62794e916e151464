"""The ``searcher`` section: one model for each search method."""

import re
from collections.abc import Callable
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_serializer

from determined.config.model import Count, Length, Model, SearchLength, kind_of, wrong

Rungs = Annotated[int, Field(ge=1, le=100)]
SAMPLERS = ("tpe", "random", "cmaes", "gp")
PRUNERS = ("none", "median", "percentile", "successive_halving", "hyperband", "threshold")
_CLASS = re.compile(r"[A-Za-z0-9_./]+:[A-Za-z0-9_.]+\Z")


def _class_name(value: object) -> object:
    if isinstance(value, str) and not _CLASS.match(value):
        raise wrong("E206", "expected module:Class or folder/file.py:Class")
    return value


def _named(names: tuple[str, ...]) -> Callable[[object], object]:
    """Returns the check of a name, or of a mapping with a ``name`` and arguments."""

    def check(value: object) -> object:
        name, at = (value.get("name"), ("name",)) if isinstance(value, dict) else (value, ())
        if not isinstance(name, str):
            raise wrong("E201", f"expected a name, or a mapping with a name, got {kind_of(value)}")
        if name not in names:
            raise wrong("E204", f'"{name}" is none of {", ".join(names)}', *at)
        if isinstance(value, dict) and "seed" in value:
            raise wrong("E206", "the seed follows from reproducibility.experiment_seed; remove it", "seed")
        return value

    return check


MethodClass = Annotated[str, BeforeValidator(_class_name)]
Sampler = Annotated[Any, BeforeValidator(_named(SAMPLERS))]
Pruner = Annotated[Any, BeforeValidator(_named(PRUNERS))]


class Searcher(Model):
    """The fields of every searcher."""

    metric: str = Field(min_length=1)
    smaller_is_better: bool = True
    source_trial_id: Annotated[int, Field(ge=1, le=2**63 - 1)] | None = None
    source_checkpoint_uuid: str | None = None
    max_length: SearchLength = None

    @model_serializer(mode="wrap")
    def _short_length(self, handler: Any) -> dict[str, Any]:  # noqa: ANN401  # a value of a YAML document
        values: dict[str, Any] = handler(self)
        if isinstance(self.max_length, Length):
            values["max_length"] = self.max_length.to_json()
        return values


class SingleSearcher(Searcher):
    """A search with one trial."""

    name: Literal["single"] = "single"


class RandomSearcher(Searcher):
    """A search with ``max_trials`` samples; ``max_concurrent_trials`` 0 runs all at once."""

    name: Literal["random"] = "random"
    max_trials: Annotated[int, Field(ge=1)]
    max_concurrent_trials: Count = 16


class GridSearcher(Searcher):
    """A search over every combination."""

    name: Literal["grid"] = "grid"
    max_concurrent_trials: Count = 16


class ListSearcher(Searcher):
    """A search over the sets of hyperparameters in ``trials``, in their order."""

    name: Literal["list"] = "list"
    trials: Annotated[list[dict[str, Any]], Field(min_length=1)]
    max_concurrent_trials: Count = 16


class HalvingSearcher(Searcher):
    """The fields of searchers that compare trials at rungs and stop the worse ones."""

    max_trials: Annotated[int, Field(ge=1)]
    time_metric: Annotated[str, Field(min_length=1)] | None = None
    max_time: Annotated[int, Field(ge=1, le=2**63 - 1)] | None = None
    divisor: Annotated[float, Field(gt=1, le=1000)] = 4.0
    max_concurrent_trials: Count = 16
    stop_once: bool | None = None


class AsyncHalvingSearcher(HalvingSearcher):
    """A search in one bracket of ``num_rungs`` rungs."""

    name: Literal["async_halving"] = "async_halving"
    num_rungs: Rungs


class AdaptiveAshaSearcher(HalvingSearcher):
    """A search in several brackets, which stop trials early to different degrees."""

    name: Literal["adaptive_asha"] = "adaptive_asha"
    mode: Literal["aggressive", "standard", "conservative"] = "standard"
    max_rungs: Rungs = 5
    bracket_rungs: list[Rungs] = []


class TaskSearcher(Searcher):
    """The fields of searchers whose method runs in a task."""

    max_trials: Annotated[int, Field(ge=1)]
    max_concurrent_trials: Count = 16
    time_metric: Annotated[str, Field(min_length=1)] | None = None
    event_timeout: Annotated[int, Field(ge=1, le=86400)] = 600


class MethodSearcher(TaskSearcher):
    """A search by a class of your own, a ``determined.searcher.SearchMethod``."""

    name: Literal["search_method"] = "search_method"
    method: MethodClass
    arguments: dict[str, Any] = {}


class OptunaSearcher(TaskSearcher):
    """A search by Optuna, which the tasks' Python environment must have."""

    name: Literal["optuna"] = "optuna"
    sampler: Sampler = "tpe"
    pruner: Pruner = "none"


AnySearcher = (
    SingleSearcher
    | RandomSearcher
    | GridSearcher
    | ListSearcher
    | AsyncHalvingSearcher
    | AdaptiveAshaSearcher
    | MethodSearcher
    | OptunaSearcher
)
SEARCHERS: dict[str, type[Searcher]] = {
    "single": SingleSearcher,
    "random": RandomSearcher,
    "grid": GridSearcher,
    "list": ListSearcher,
    "async_halving": AsyncHalvingSearcher,
    "adaptive_asha": AdaptiveAshaSearcher,
    "search_method": MethodSearcher,
    "optuna": OptunaSearcher,
}
GONE = {
    "sync_halving": "use async_halving, which does not wait for the slowest trial of a rung",
    "adaptive": "use adaptive_asha, which has the same modes",
    "adaptive_simple": "use adaptive_asha with max_trials and max_time",
    "custom": 'use "search_method" with a subclass of determined.searcher.SearchMethod, or "optuna"',
    "pbt": "use adaptive_asha",
}
"""Searchers of earlier versions, and what to use instead."""
COMMON_FIELDS = frozenset(Searcher.model_fields)
