"""Runs migrations on the engine that the master hands over: all of them in one transaction, or none."""

from alembic import context

from determined_master.db import models  # noqa: F401
from determined_master.db.models.base import Base

with context.config.attributes["engine"].begin() as connection:
    context.configure(
        connection=connection,
        target_metadata=Base.metadata,
        render_as_batch=True,
        transactional_ddl=True,
        transaction_per_migration=False,
    )
    with context.config.attributes["checked"](connection), context.begin_transaction():
        context.run_migrations()
