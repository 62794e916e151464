"""Runs migrations on the engine that the master hands over."""

from alembic import context

from determined_master.db import models  # noqa: F401
from determined_master.db.base import Base

with context.config.attributes["engine"].connect() as connection:
    context.configure(connection=connection, target_metadata=Base.metadata, render_as_batch=True)
    with context.begin_transaction():
        context.run_migrations()
    connection.commit()
