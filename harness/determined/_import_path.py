"""Importing the code of a folder, such as a checkpoint's ``code``, beside modules of the same names."""

import contextlib
import importlib
import os
import sys
from collections.abc import Iterator


@contextlib.contextmanager
def import_from_path(path: str | os.PathLike[str]) -> Iterator[None]:
    """Makes the modules of a folder importable inside the block, in front of all others.

    A module that is imported inside is the folder's own, although another of its name was imported before. After the
    block the import system is as it was, and what was imported stays usable by its name in the program.

    Args:
        path: a folder with modules or packages.

    Raises:
        NotADirectoryError: ``path`` is no folder.

    >>> with import_from_path("checkpoint/code"):  # doctest: +SKIP
    ...     import model_def as model_of_checkpoint
    """
    folder = os.path.abspath(os.fspath(path))
    if not os.path.isdir(folder):
        raise NotADirectoryError(f"import_from_path: {folder} is not a folder")
    own = _top_names(folder)
    hidden = {name: module for name, module in sys.modules.items() if name.partition(".")[0] in own}
    for name in hidden:
        del sys.modules[name]
    sys.path.insert(0, folder)
    importlib.invalidate_caches()
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):  # the block may have changed the path itself
            sys.path.remove(folder)
        for name in [name for name in sys.modules if name.partition(".")[0] in own]:
            del sys.modules[name]
        sys.modules.update(hidden)


def _top_names(folder: str) -> frozenset[str]:
    """The names that can be imported from a folder: its modules and its folders, packages or not."""
    with os.scandir(folder) as found:
        return frozenset(each.name.partition(".")[0] for each in found if each.name.endswith(".py") or each.is_dir())
