"""Allocations over several agents: ports of their own, and whether they may be spread"""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("allocations") as table:
        table.add_column(sa.Column("port_block", sa.Integer(), nullable=True))
        table.add_column(sa.Column("single_agent", sa.Boolean(), nullable=False, server_default=sa.false()))


def downgrade() -> None:
    with op.batch_alter_table("allocations") as table:
        table.drop_column("single_agent")
        table.drop_column("port_block")
