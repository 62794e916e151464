"""Links that sign in once; indexes of what the page lists by time"""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

INDEXES = (
    ("ix_checkpoints_time", "checkpoints", ["report_time", "uuid"]),
    ("ix_events_kind", "events", ["kind", "id"]),
    ("ix_events_actor", "events", ["actor", "id"]),
    ("ix_events_target_type", "events", ["target_type", "id"]),
    ("ix_slot_holds_released", "slot_holds", ["released_at", "held_at"]),
)


def upgrade() -> None:
    op.create_table(
        "sign_in_links",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("user_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("token_hash", sa.String(length=64), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_sign_in_links_user_id_users"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_sign_in_links")),
        sa.UniqueConstraint("token_hash", name=op.f("uq_sign_in_links_token_hash")),
    )
    op.create_index(op.f("ix_sign_in_links_user_id"), "sign_in_links", ["user_id"])
    for name, table, columns in INDEXES:
        op.create_index(name, table, columns)


def downgrade() -> None:
    for name, table, _columns in reversed(INDEXES):
        op.drop_index(name, table_name=table)
    op.drop_index(op.f("ix_sign_in_links_user_id"), table_name="sign_in_links")
    op.drop_table("sign_in_links")
