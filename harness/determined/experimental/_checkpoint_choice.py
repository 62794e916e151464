"""Query of a list of checkpoints, and the choice of the first one."""

from collections.abc import Sequence
from typing import Any

from determined.errors import NotFound
from determined.experimental._checkpoint import Checkpoint
from determined.experimental._enums import CheckpointSortBy, CheckpointState, OrderBy


def completed(sort_by: str | CheckpointSortBy | None, order_by: OrderBy | None) -> dict[str, Any]:
    """Returns the query for stored checkpoints; without ``sort_by``, by the searcher's metric and best first."""
    by = CheckpointSortBy.SEARCHER_METRIC if sort_by is None else sort_by
    return {
        "states": [CheckpointState.COMPLETED.value],
        "sortByAttr": by.value if isinstance(by, CheckpointSortBy) else None,
        "sortByMetric": None if isinstance(by, CheckpointSortBy) else by,
        "orderBy": order_by.value if order_by else None,
    }


def first(found: Sequence[Checkpoint], owner: str, uuid: str | None = None) -> Checkpoint:
    """Returns the first checkpoint. Raises NotFound with the name of the owner if there is none."""
    if found:
        return found[0]
    if uuid is not None:
        raise NotFound(f"{owner} has no stored checkpoint {uuid}")
    raise NotFound(f"{owner} has no stored checkpoint")
