"""The ``searcher`` section: single, random and grid."""

from typing import Annotated, Any, Literal

from pydantic import Field, model_serializer

from determined.config.model import Count, Length, Model, SearchLength


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


AnySearcher = SingleSearcher | RandomSearcher | GridSearcher
SEARCHERS: dict[str, type[Searcher]] = {
    "single": SingleSearcher,
    "random": RandomSearcher,
    "grid": GridSearcher,
}
LATER = {"adaptive_asha", "async_halving"}
GONE = {"sync_halving", "adaptive", "adaptive_simple", "custom", "pbt"}
COMMON_FIELDS = frozenset(Searcher.model_fields)
