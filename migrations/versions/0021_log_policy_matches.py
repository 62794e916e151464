"""Lines that matched a log policy are recorded"""

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "log_policy_matches",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("trial_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("task_id", sa.String(64), nullable=False),
        sa.Column("allocation_id", sa.String(80), nullable=False),
        sa.Column("position", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("pattern", sa.Text(), nullable=False),
        sa.Column("action", sa.String(16), nullable=True),
        sa.Column("agent_id", sa.String(255), nullable=True),
        sa.Column("line", sa.Text(), nullable=False),
        sa.Column("is_void", sa.Boolean(), nullable=False),
        sa.Column("time", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_log_policy_matches"),
        sa.UniqueConstraint("allocation_id", "position", name="uq_log_policy_matches_allocation_id_position"),
    )
    op.create_index("ix_log_policy_matches_trial_id", "log_policy_matches", ["trial_id"])
    op.create_index("ix_log_policy_matches_task_id", "log_policy_matches", ["task_id"])


def downgrade() -> None:
    op.drop_table("log_policy_matches")
