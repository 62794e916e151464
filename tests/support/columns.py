"""Brings the experiment index up to date before a test looks at it."""

from determined_master.experiment_index.indexer import Indexer
from determined_master.loops.columns import ColumnLoop


async def update_columns(indexer: Indexer) -> None:
    """Updates all stale experiments, also those that the loop would hold back."""
    await ColumnLoop(indexer).tick(at_once=True)
