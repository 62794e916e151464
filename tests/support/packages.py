"""Makes small packages and environments without an index or a build."""

import sys
import venv
import zipfile
from importlib import metadata
from pathlib import Path


def make_wheel(folder: Path, name: str, version: str) -> Path:
    """Writes a wheel whose only module has a ``version``."""
    folder.mkdir(parents=True, exist_ok=True)
    wheel = folder / f"{name}-{version}-py3-none-any.whl"
    info = f"{name}-{version}.dist-info"
    files = {
        f"{name}.py": f"version = __version__ = {version!r}\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    files[f"{info}/RECORD"] = "".join(f"{path},,\n" for path in (*files, f"{info}/RECORD"))
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
    return wheel


def make_environment(folder: Path, *wheels: Path) -> Path:
    """Creates a virtual environment with these wheels unpacked and with the pip of this one."""
    venv.create(folder, symlinks=True)
    site = site_packages(folder)
    pip = metadata.distribution("pip")
    for name in ("pip", f"pip-{pip.version}.dist-info"):
        (site / name).symlink_to(Path(str(pip.locate_file(name))))
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(site)
    return folder


def site_packages(environment: Path) -> Path:
    return environment / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"


def listing(folder: Path) -> dict[str, int]:
    """Returns every file with its modification time, without compiled Python files."""
    paths = (path for path in folder.rglob("*") if "__pycache__" not in path.parts)
    return {str(path.relative_to(folder)): path.lstat().st_mtime_ns for path in paths if not path.is_dir()}
