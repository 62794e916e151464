"""Objects of rows that were read or written past SQLAlchemy. They belong to the session as if it had loaded them."""

from collections.abc import Sequence
from functools import cache, cached_property
from typing import Any

from sqlalchemy import Table, inspect
from sqlalchemy.orm import InstanceState, make_transient_to_detached
from sqlalchemy.orm.attributes import instance_state

from determined_master.db.base import Base, table_of
from determined_master.db.session import ReadSession


class RowObjects:
    """Makes objects of one mapped class."""

    def __init__(self, model: type[Base]) -> None:
        self.model = model
        self.table: Table = table_of(model)
        self._mapper = inspect(model)
        attributes = {column.name: self._mapper.get_property_by_column(column) for column in self.table.columns}
        self.keys = {name: attribute.key for name, attribute in attributes.items()}
        """Attribute of each column."""
        self.loaded = [name for name, attribute in attributes.items() if not attribute.deferred]
        """The columns that a query of the class reads."""
        self._loaded_keys = [self.keys[name] for name in self.loaded]
        self.primary_keys = [self.keys[column.name] for column in self.table.primary_key.columns]

    @cached_property
    def _defaults(self) -> list[tuple[str, Any]]:
        """Attribute and default of each column that has one; a function is one of SQLAlchemy."""
        defaults = [(self.keys[each.name], each.default) for each in self.table.columns]
        return [(key, default.arg) for key, default in defaults if default is not None]  # type: ignore[attr-defined]

    @cached_property
    def _nullable(self) -> list[str]:
        """Attributes that are None where nothing was set."""
        return [self.keys[each.name] for each in self.table.columns if each.nullable and each.server_default is None]

    def identity(self, *key: object) -> Any:  # noqa: ANN401  # of SQLAlchemy
        """Returns the key of a row in the identity map of a session."""
        return self._mapper.identity_key_from_primary_key(key)

    def of(self, session: ReadSession, values: Sequence[Any]) -> Base | None:
        """Returns the object of a row, whose ``values`` are those of the columns ``loaded``.

        That is the session's own object where it has one, as for a query of SQLAlchemy. Returns None if the key is
        NULL: an outer join has found nothing.
        """
        state = dict(zip(self._loaded_keys, values, strict=True))
        key = [state[name] for name in self.primary_keys]
        if key[0] is None:
            return None
        identity = self.identity(*key)
        known: Base | None = session.identity_map.get(identity)
        if known is not None:
            return known
        # As SQLAlchemy makes the object of a row that it loads: it has no history, and deferred columns raise.
        row: Base = self._mapper.class_manager.new_instance()
        vars(row).update(state)
        instance = instance_state(row)
        instance.key = identity
        self._attach(session, instance)
        return row

    def values_of(self, row: Base) -> dict[str, Any]:
        """Returns column → value of a new object, and sets its defaults."""
        state = vars(row)
        for key, default in self._defaults:
            if key not in state:
                setattr(row, key, default(None) if callable(default) else default)
        return {name: state[key] for name, key in self.keys.items() if key in state}

    def attach_new(self, session: ReadSession, row: Base, number: int | None) -> None:
        """Makes an object that was just inserted one of the session. ``number``: of its row."""
        vars(row).setdefault(self.primary_keys[0], number)
        for key in self._nullable:
            vars(row).setdefault(key, None)
        make_transient_to_detached(row)
        self._attach(session, instance_state(row))

    def _attach(self, session: ReadSession, instance: InstanceState[Any]) -> None:
        instance.session_id = session.sync_session.hash_key
        session.identity_map.add(instance)


@cache
def row_objects(model: type[Base]) -> RowObjects:
    return RowObjects(model)
