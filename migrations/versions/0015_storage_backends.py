"""Each checkpoint names its storage, so that a later change of a configuration orphans nothing"""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    key = sa.BigInteger().with_variant(sa.Integer, "sqlite")
    op.create_table(
        "storage_backends",
        sa.Column("id", key, nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("config", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_storage_backends"),
        sa.UniqueConstraint("digest", name="uq_storage_backends_digest"),
    )
    # Earlier checkpoints have none: they are where their experiment's configuration says.
    op.add_column("checkpoints", sa.Column("storage_id", key, nullable=True))
    op.create_index("ix_checkpoints_storage_id", "checkpoints", ["storage_id"])
    op.add_column("checkpoints", sa.Column("removal_task_id", sa.String(64), nullable=True))


def downgrade() -> None:
    op.drop_column("checkpoints", "removal_task_id")
    op.drop_index("ix_checkpoints_storage_id", "checkpoints")
    op.drop_column("checkpoints", "storage_id")
    op.drop_table("storage_backends")
