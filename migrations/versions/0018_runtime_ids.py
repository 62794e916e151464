"""The ids that container engines give to containers"""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("containers", sa.Column("runtime_id", sa.String(128), nullable=False, server_default=sa.text("''")))


def downgrade() -> None:
    op.drop_column("containers", "runtime_id")
