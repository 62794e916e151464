"""The experiment index holds no secrets: those of configurations that are there already are removed"""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

SECRET = """
SELECT id FROM column_names WHERE kind = 'config' AND (
    name = 'config.data.secrets' OR name LIKE 'config.data.secrets.%'
    OR name IN (
        'config.checkpoint_storage.access_key', 'config.checkpoint_storage.secret_key',
        'config.checkpoint_storage.connection_string', 'config.checkpoint_storage.credential',
        'config.environment.registry_auth.password', 'config.environment.registry_auth.auth',
        'config.environment.registry_auth.identitytoken', 'config.environment.registry_auth.registrytoken'
    )
)
"""
WITH_PASSWORD = """
text LIKE '%://%:%@%' AND name_id IN (
    SELECT id FROM column_names WHERE kind = 'config' AND (
        name LIKE 'config.checkpoint_storage.%' OR name LIKE 'config.environment.%' OR name LIKE 'config.data.%'
    )
)
"""


def upgrade() -> None:
    for table in ("column_values", "column_counts"):
        op.execute(f"DELETE FROM {table} WHERE name_id IN ({SECRET})")
    op.execute(f"DELETE FROM column_names WHERE id IN ({SECRET})")
    # Addresses with a password: the next start takes the values of these experiments anew, and counts them.
    found = f"SELECT experiment_id FROM column_values WHERE {WITH_PASSWORD}"
    _run(f"UPDATE experiments SET values_stale = true WHERE id IN ({found})")
    _run(f"UPDATE column_values SET text = '' WHERE {WITH_PASSWORD}")


def _run(statement: str) -> None:
    op.execute(sa.text(statement.replace(":", r"\:")))  # a colon is no parameter here


def downgrade() -> None:
    """What was removed is not put back."""
