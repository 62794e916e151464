"""One experiment as a list shows it, from one row of a query."""

from typing import NamedTuple

from determined_master.db.models import ExperimentRow, ExperimentSummaryRow


class Shown(NamedTuple):
    """``experiment`` is read without its configuration, which is most of the row."""

    experiment: ExperimentRow
    username: str
    summary: ExperimentSummaryRow | None
    state: str
    """The finer word."""
