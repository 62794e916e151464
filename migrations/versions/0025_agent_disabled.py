"""An allocation knows that it was killed because its agent was disabled"""

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("allocations", sa.Column("agent_disabled", sa.Boolean(), nullable=False, server_default=sa.false()))
    # Of those that end just now the earlier version knows it by this sentence alone.
    op.execute(
        "UPDATE allocations SET agent_disabled = true WHERE settled = false AND kill_requested_at IS NOT NULL"
        " AND (message LIKE 'agent % was disabled by %' OR message LIKE 'slot % of agent % was disabled by %')"
    )


def downgrade() -> None:
    op.drop_column("allocations", "agent_disabled")
