"""On PostgreSQL every whole number has 64 bits, and rows that are read by their id appear in the order of their ids"""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

NARROW = """
SELECT table_name, column_name FROM information_schema.columns
WHERE table_schema = current_schema() AND data_type = 'integer' ORDER BY table_name, column_name
"""
ORDERED = ("task_logs", "search_facts")
"""Tables with two writers, whose readers remember the last id that they have seen."""
LOCK = """
CREATE FUNCTION detent_insert_in_order() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(7310, TG_RELID::int);
    RETURN NULL;
END
$$
"""


def upgrade() -> None:
    if op.get_bind().dialect.name != "postgresql":
        return
    for table, column in op.get_bind().execute(sa.text(NARROW)).all():
        op.alter_column(table, column, type_=sa.BigInteger())
    op.execute(sa.text(LOCK))
    for table in ORDERED:
        op.execute(
            f"CREATE TRIGGER insert_in_order BEFORE INSERT ON {table} "
            "FOR EACH STATEMENT EXECUTE FUNCTION detent_insert_in_order()"
        )


def downgrade() -> None:
    """Removes the triggers. Numbers that need 64 bits would be lost."""
    if op.get_bind().dialect.name != "postgresql":
        return
    for table in ORDERED:
        op.execute(f"DROP TRIGGER insert_in_order ON {table}")
    op.execute("DROP FUNCTION detent_insert_in_order()")
