"""Search methods of your own: a class that receives events of trials and returns actions.

See *Search hyperparameters* of the documentation. Standard library only.
"""

from typing import NoReturn

from determined.searcher.actions import (
    Action,
    Create,
    Event,
    LimitsChanged,
    Shutdown,
    Stop,
    TrialClosed,
    TrialValidated,
)
from determined.searcher.method import ReplacedMethods, SearchContext, SearchMethod

__all__ = [
    "Action",
    "Create",
    "Event",
    "LimitsChanged",
    "ReplacedMethods",
    "SearchContext",
    "SearchMethod",
    "Shutdown",
    "Stop",
    "TrialClosed",
    "TrialValidated",
]

_OF_2022 = frozenset(
    {
        *("Close", "ExitedReason", "LocalSearchRunner", "Operation", "Progress", "RemoteSearchRunner", "SearchRunner"),
        *("SearcherState", "ValidateAfter"),
    }
)


def __getattr__(name: str) -> NoReturn:
    if name in _OF_2022:
        raise ImportError(
            f"determined.searcher.{name} belongs to the SearchMethod of Determined 2022. Here a subclass of "
            "SearchMethod returns Create, Stop and Shutdown, trials train as long as their code does, and the "
            'configuration names the class: searcher: {name: search_method, method: "module:Class"}'
        )
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
