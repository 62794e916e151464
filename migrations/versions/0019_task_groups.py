"""Requests consist of groups of tasks; jobs limit the slots that they hold"""

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("jobs", sa.Column("max_slots", sa.BigInteger(), nullable=True))
    op.add_column("allocations", sa.Column("groups", sa.JSON(), nullable=True))
    op.add_column("allocations", sa.Column("preempted_for", sa.String(80), nullable=True))
    op.create_index("ix_allocations_pool_state", "allocations", ["pool", "state"])


def downgrade() -> None:
    op.drop_index("ix_allocations_pool_state", "allocations")
    op.drop_column("allocations", "preempted_for")
    op.drop_column("allocations", "groups")
    op.drop_column("jobs", "max_slots")
