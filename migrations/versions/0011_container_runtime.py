"""How an agent runs tasks: as processes, or in containers of an engine"""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    runtime = sa.Column("container_runtime", sa.String(16), nullable=False, server_default="process")
    op.add_column("agents", runtime)


def downgrade() -> None:
    op.drop_column("agents", "container_runtime")
