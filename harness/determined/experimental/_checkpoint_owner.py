"""The stored checkpoints of an experiment or a trial, and the choice of the best."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from determined.client.paging import items
from determined.client.session import Session
from determined.errors import NotFound
from determined.experimental._checkpoint import Checkpoint
from determined.experimental._enums import CheckpointSortBy, CheckpointState, OrderBy


class CheckpointOwner(ABC):
    """Lists checkpoints and finds the best one."""

    _session: Session

    @property
    @abstractmethod
    def _checkpoints_path(self) -> str:
        """Path of the list of checkpoints."""

    @property
    @abstractmethod
    def _title(self) -> str:
        """Kind and id, for errors."""

    def list_checkpoints(
        self,
        sort_by: str | CheckpointSortBy | None = None,
        order_by: OrderBy | None = None,
        max_results: int | None = None,
    ) -> list[Checkpoint]:
        """Returns the stored checkpoints.

        Args:
            sort_by: an attribute, or the name of a validation metric; the searcher's metric if not given.
            order_by: direction; if not given, the best first for metrics and ascending for attributes.
            max_results: at most so many.
        """
        query = completed(sort_by, order_by)
        found = items(self._session, self._checkpoints_path, "checkpoints", query, limit=max_results)
        return [Checkpoint(self._session, each) for each in found]

    def top_checkpoint(
        self, sort_by: str | CheckpointSortBy | None = None, order_by: OrderBy | None = None
    ) -> Checkpoint:
        """Returns the best checkpoint.

        Args:
            sort_by: see :meth:`list_checkpoints`.
            order_by: see :meth:`list_checkpoints`.

        Raises:
            NotFound: there is no stored checkpoint.
        """
        return first(self.list_checkpoints(sort_by, order_by, max_results=1), self._title)


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
