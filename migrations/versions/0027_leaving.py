"""Agents leave at a known time; instances wait in a queue outside the cluster"""

import sqlalchemy as sa
from alembic import op

revision = "0027"
down_revision = "0026"
branch_labels = None
depends_on = None


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text(), nullable=False, server_default=sa.text("''"))


def upgrade() -> None:
    op.add_column("agents", _text("origin"))
    op.add_column("agents", sa.Column("leaves_at", sa.BigInteger(), nullable=True))
    op.add_column("agents", _text("leaves_why"))
    op.add_column("agents", sa.Column("has_time_limit", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.add_column("agents", sa.Column("leaving", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.add_column("instances", _text("waiting"))
    op.add_column("instances", sa.Column("start_estimate", sa.BigInteger(), nullable=True))
    op.add_column("allocations", sa.Column("agent_left", sa.Boolean(), nullable=False, server_default=sa.false()))
    column = sa.Column("limits_without_checkpoint", sa.BigInteger(), nullable=False, server_default=sa.text("0"))
    op.add_column("trials", column)


def downgrade() -> None:
    for table, column in (
        ("trials", "limits_without_checkpoint"),
        ("allocations", "agent_left"),
        ("instances", "start_estimate"),
        ("instances", "waiting"),
        ("agents", "leaving"),
        ("agents", "has_time_limit"),
        ("agents", "leaves_why"),
        ("agents", "leaves_at"),
        ("agents", "origin"),
    ):
        op.drop_column(table, column)
