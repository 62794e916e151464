"""A Python installation like conda's: no ``pyvenv.cfg``, its own standard library, and a folder ``conda-meta``."""

import os
import shutil
import sys
import sysconfig
from pathlib import Path


def make(prefix: Path, site: str) -> Path:
    """Makes a prefix with the interpreter of these tests that also imports the packages of the folder ``site``."""
    (prefix / "bin").mkdir(parents=True)
    (prefix / "conda-meta").mkdir()
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    library = prefix / "lib" / version
    shutil.copytree(
        sysconfig.get_path("stdlib"),
        library,
        symlinks=True,
        ignore=shutil.ignore_patterns("site-packages", "dist-packages", "test", "__pycache__", "config-*"),
        copy_function=_link,
    )
    for shared in (Path(sys.base_prefix) / "lib").glob("libpython*.so*"):
        _link(shared, prefix / "lib" / shared.name)
    # Copied: Python derives the prefix from the path of the interpreter.
    shutil.copy(Path(sys.executable).resolve(), prefix / "bin" / version)
    for name in ("python", "python3"):
        (prefix / "bin" / name).symlink_to(version)
    (library / "site-packages").mkdir()
    (library / "site-packages" / "lab.pth").write_text(f"{site}\n")
    return prefix


def _link(source: str | os.PathLike[str], target: str | os.PathLike[str]) -> None:
    """Makes a hard link, or a copy on another file system."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
