"""Agents that the provider of a pool starts and ends"""

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "instances",
        sa.Column("agent_id", sa.String(64), nullable=False),
        sa.Column("pool", sa.String(255), nullable=False),
        sa.Column("state", sa.String(32), nullable=False),
        sa.Column("provider", sa.JSON(), nullable=False),
        sa.Column("requested_at", sa.BigInteger(), nullable=False),
        sa.Column("started_at", sa.BigInteger(), nullable=True),
        sa.Column("ended_at", sa.BigInteger(), nullable=True),
        sa.Column("failure", sa.Text(), server_default="", nullable=False),
        sa.Column("end_failure", sa.Text(), server_default="", nullable=False),
        sa.PrimaryKeyConstraint("agent_id", name="pk_instances"),
    )
    op.create_index("ix_instances_state", "instances", ["state"])
    op.create_index("ix_instances_pool", "instances", ["pool", "requested_at"])


def downgrade() -> None:
    op.drop_table("instances")
