"""Checks that paths of an archive stay below the target folder."""

from determined.errors import ContextError

MAX_PATH = 4096


def clean(path: str) -> str:
    """Returns the path without ``.`` and doubled slashes. Raises ContextError if it is absolute or has a ``..``.

    >>> clean("./a//b/")
    'a/b'
    """
    if path.startswith("/") or "\0" in path or len(path) > MAX_PATH:
        raise ContextError(f"the context holds a member that escapes: {path[:200]!r}")
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise ContextError(f"the context holds a member that escapes: {path[:200]!r}")
    return "/".join(parts)


def check_link(path: str, target: str) -> None:
    """Raises ContextError if a link at ``path`` to ``target`` leads out of the top folder."""
    depth = path.count("/")
    if target.startswith("/") or not target or "\0" in target:
        raise ContextError(f"the context holds a link that escapes: {path!r} to {target[:200]!r}")
    for part in target.split("/"):
        if part in ("", "."):
            continue
        depth += -1 if part == ".." else 1
        if depth < 0:
            raise ContextError(f"the context holds a link that escapes: {path!r} to {target[:200]!r}")
