"""A task waits for a Python environment without slots"""

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "environment_waits",
        sa.Column("task_id", sa.String(64), sa.ForeignKey("tasks.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("agent_id", sa.String(255), primary_key=True),
        sa.Column("environment_key", sa.String(16), primary_key=True),
        sa.Column("allocation_id", sa.String(80), sa.ForeignKey("allocations.id", ondelete="CASCADE"), nullable=False),
        sa.Column("build_id", sa.String(64), nullable=True),
        sa.Column("is_over", sa.Boolean(), nullable=False, server_default=sa.false()),
    )
    op.create_index("ix_environment_waits_allocation_id", "environment_waits", ["allocation_id"])


def downgrade() -> None:
    op.drop_table("environment_waits")
