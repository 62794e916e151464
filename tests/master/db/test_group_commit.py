"""The writer of reports: its transactions and their errors."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence

import pytest
from sqlalchemy import Column, Connection, ForeignKey, Integer, MetaData, Table, insert, text
from sqlalchemy.exc import IntegrityError

from determined_master.db.group_commit import GroupWriter
from determined_master.db.session import Database

_PARENTS = Table("parents", MetaData(), Column("id", Integer, primary_key=True))
_CHILDREN = Table(
    "children",
    _PARENTS.metadata,
    Column("id", Integer, primary_key=True),
    Column("parent_id", ForeignKey("parents.id", deferrable=True, initially="DEFERRED")),
)


class Children:
    """Stores (id, parent's id). ``before`` runs first in each transaction."""

    def __init__(self, before: Callable[[Connection], object] = lambda _connection: None) -> None:
        self.undone = 0
        self._before = before

    def apply(self, connection: Connection, operations: Sequence[tuple[int, int]]) -> Sequence[int]:
        self._before(connection)
        connection.execute(insert(_CHILDREN), [{"id": number, "parent_id": parent} for number, parent in operations])
        return [number for number, _ in operations]

    def rolled_back(self) -> None:
        self.undone += 1

    def topics(self, operations: Sequence[tuple[int, int]]) -> set[str]:
        return set()

    def is_quick(self, operations: Sequence[tuple[int, int]]) -> bool:
        return True


@pytest.fixture
async def writer(database: Database) -> AsyncIterator[GroupWriter]:
    async with database.write() as session:
        connection = await session.connection()
        await connection.run_sync(_PARENTS.metadata.create_all)
        await connection.execute(insert(_PARENTS), [{"id": 1}])
    created = GroupWriter(database)
    running = asyncio.create_task(created.run())
    yield created
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def numbers(database: Database, table: str = "children") -> list[int]:
    async with database.read() as session:
        return sorted(await session.scalars(text(f"SELECT id FROM {table}")))


@pytest.mark.parametrize("bad", [(1, 1), (7, 9)], ids=["in-a-statement", "in-the-commit"])
async def test_an_error_undoes_its_group_and_the_next_group_is_stored(
    database: Database, writer: GroupWriter, bad: tuple[int, int]
) -> None:
    store = Children()
    await writer.write(store, (1, 1))
    with pytest.raises(IntegrityError):
        await writer.write(store, bad)
    assert store.undone >= 1
    assert await numbers(database) == [1]
    assert await writer.write(store, (2, 1)) == 2
    assert await numbers(database) == [1, 2]


@pytest.mark.parametrize(("parent", "stored"), [(1, [1, 5]), (9, [1])])
async def test_all_statements_of_a_store_are_one_transaction(
    database: Database, writer: GroupWriter, parent: int, stored: list[int]
) -> None:
    store = Children(lambda connection: connection.execute(text("INSERT INTO parents VALUES (5)")))
    writing = writer.write(store, (1, parent))
    if parent == 1:
        await writing
    else:
        with pytest.raises(IntegrityError):
            await writing
    assert await numbers(database, "parents") == stored
    assert await writer.write(Children(), (2, 1)) == 2
