"""Ended allocations that nobody has settled yet are found without looking at all that ever ended"""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index(
        "ix_allocations_unsettled",
        "allocations",
        ["state", "ended_at"],
        sqlite_where=sa.text("settled IS 0"),
        postgresql_where=sa.text("settled IS false"),
    )


def downgrade() -> None:
    op.drop_index("ix_allocations_unsettled", table_name="allocations")
