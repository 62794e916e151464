"""The ``searcher`` section: one model for each search method."""

from typing import Annotated, Any, Literal

from pydantic import Field, model_serializer

from determined.config.model import Count, Length, Model, SearchLength

Rungs = Annotated[int, Field(ge=1, le=100)]


class Searcher(Model):
    """The fields of every searcher."""

    metric: str = Field(min_length=1)
    smaller_is_better: bool = True
    source_trial_id: Annotated[int, Field(ge=1)] | None = None
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


AnySearcher = (
    SingleSearcher | RandomSearcher | GridSearcher | ListSearcher | AsyncHalvingSearcher | AdaptiveAshaSearcher
)
SEARCHERS: dict[str, type[Searcher]] = {
    "single": SingleSearcher,
    "random": RandomSearcher,
    "grid": GridSearcher,
    "list": ListSearcher,
    "async_halving": AsyncHalvingSearcher,
    "adaptive_asha": AdaptiveAshaSearcher,
}
GONE = {
    "sync_halving": "use async_halving, which does not wait for the slowest trial of a rung",
    "adaptive": "use adaptive_asha, which has the same modes",
    "adaptive_simple": "use adaptive_asha with max_trials and max_time",
    "custom": 'use adaptive_asha, or "list" with the sets of hyperparameters to try',
    "pbt": "use adaptive_asha",
}
"""Searchers of earlier versions, and what to use instead."""
COMMON_FIELDS = frozenset(Searcher.model_fields)
