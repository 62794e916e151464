"""Brings a database to the newest revision with Alembic, from the checkout or from the wheel."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Engine

import determined_master


def migrations_folder() -> Path:
    """Inside the wheel ``_migrations`` lies in this package; in the checkout beside its roots."""
    package = Path(determined_master.__file__).parent
    inside = package / "_migrations"
    return inside if inside.is_dir() else package.parents[1] / "migrations"


def alembic_config(engine: Engine) -> Config:
    config = Config()
    config.set_main_option("script_location", str(migrations_folder()))
    config.attributes["engine"] = engine
    return config


def upgrade(engine: Engine, revision: str = "head") -> None:
    command.upgrade(alembic_config(engine), revision)


def downgrade(engine: Engine, revision: str = "base") -> None:
    command.downgrade(alembic_config(engine), revision)
