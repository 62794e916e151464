"""What an agent sees of its slots: accelerators that other programs use, or that are broken"""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("agent_slots", sa.Column("status", sa.String(16), nullable=False, server_default="free"))
    op.add_column("agent_slots", sa.Column("status_reason", sa.Text, nullable=False, server_default=""))


def downgrade() -> None:
    op.drop_column("agent_slots", "status_reason")
    op.drop_column("agent_slots", "status")
