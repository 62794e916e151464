"""Search methods of your own: a class that receives events of trials and returns actions.

See *Search hyperparameters* of the documentation. Standard library only.
"""

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
