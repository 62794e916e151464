"""The writer of reports: a group is one transaction of few statements."""

from sqlalchemy import event
from tests.master.db.test_group_commit import Children, numbers

from determined_master.db.group_commit import GroupWriter
from determined_master.db.session import Database


async def test_a_report_is_written_by_the_connection_that_is_open(database: Database, writer: GroupWriter) -> None:
    store = Children()
    assert await writer.write(store, (1, 1)) == 1
    checkouts: list[object] = []
    event.listen(database.group_engine, "checkout", lambda *_: checkouts.append(None))
    assert await writer.write(store, (2, 1)) == 2
    assert (checkouts, await numbers(database), store.undone) == ([], [1, 2], 0)
