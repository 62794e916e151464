"""The text search uses the database's own function on PostgreSQL, and ours on SQLite."""

from sqlalchemy import select
from sqlalchemy.dialects import postgresql, sqlite

from determined_master.db.models import UserRow
from determined_master.db.statements.text_search import contains_lowered


def test_each_database_calls_a_function_that_it_has() -> None:
    query = select(UserRow.id).where(contains_lowered(UserRow.username, "é%"))
    assert "WHERE (strpos(lower(users.username), %(contains_lowered_1)s" in str(
        query.compile(dialect=postgresql.dialect())
    )
    assert "WHERE contains_lowered(users.username, ?)" in str(query.compile(dialect=sqlite.dialect()))
