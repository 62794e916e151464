"""``python ordinary_user.py [--reach PATH]… -- COMMAND`` runs a command as an ordinary user. In a mount namespace of
its own, root's folders on the way to each PATH become passable, since an environment often lies in root's home."""

import ctypes
import os
import stat
import sys
from pathlib import Path

USER = GROUP = 65534
_NEWNS, _BIND, _REC, _PRIVATE = 0x00020000, 4096, 16384, 1 << 18
_libc = ctypes.CDLL(None, use_errno=True)


def _check(result: int, operation: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{operation}: {os.strerror(number)}")


def _mount(source: str, target: str, kind: str | None, flags: int, options: str | None = None) -> None:
    texts = [None if text is None else text.encode() for text in (source, target, kind, options)]
    _check(_libc.mount(texts[0], texts[1], texts[2], ctypes.c_ulong(flags), texts[3]), f"mount at {target}")


def blocked(path: Path) -> Path | None:
    """Returns the uppermost folder on the way to ``path`` that others may not pass, or None."""
    for folder in reversed(path.parents):
        if not folder.stat().st_mode & stat.S_IXOTH:
            return folder
    return None


def links(path: Path) -> list[Path]:
    """Returns ``path`` and its targets, link by link."""
    hops = [path]
    while path.is_symlink():
        path = Path(os.path.normpath(path.parent / os.readlink(path)))
        hops.append(path)
    return [*hops, path.resolve()]


def open_way(targets: list[Path]) -> None:
    """Replaces each blocked folder by a passable one, and binds each wanted folder at its old path."""
    stopped: dict[Path, list[Path]] = {}
    for path in targets:
        gate = blocked(path)
        if gate is not None:
            stopped.setdefault(gate, []).append(path)
    if not stopped:
        return
    _check(_libc.unshare(_NEWNS), "unshare")
    _mount("none", "/", None, _REC | _PRIVATE)
    for gate, paths in stopped.items():
        handles = {path: os.open(path, os.O_PATH) for path in sorted(set(paths))}
        _mount("tmpfs", str(gate), "tmpfs", 0, "mode=0755")
        for path, descriptor in handles.items():
            if not path.exists():
                path.mkdir(parents=True)
                _mount(f"/proc/self/fd/{descriptor}", str(path), None, _BIND | _REC)
            os.close(descriptor)


def environment_of(python: Path) -> list[Path]:
    """Returns the folders of this Python and its environment."""
    return [hop.parent.parent for hop in links(python)]


def main() -> None:
    mark = sys.argv.index("--")
    reach = [Path(path) for path in sys.argv[1:mark] if path != "--reach"]
    open_way(reach)
    os.setgroups([])
    os.setresgid(GROUP, GROUP, GROUP)
    os.setresuid(USER, USER, USER)
    os.execvp(sys.argv[mark + 1], sys.argv[mark + 1 :])


if __name__ == "__main__":
    main()
