"""``determined.common``: of Determined's package only the functions of ``determined.common.util`` are here."""

from typing import Any

from determined._not_included import without_attribute


def __getattr__(name: str) -> Any:  # noqa: ANN401  # a module
    """Imports a module of the package at its first use; a name that there is not says what to use."""
    import importlib

    if name in ("api", "experimental", "util"):
        return importlib.import_module(f"determined.common.{name}")
    raise without_attribute("common", name)
