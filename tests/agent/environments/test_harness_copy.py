"""The copies of the packages that containers mount."""

import importlib.util
import py_compile
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from determined_agent.environments.harness_copy import keep_shim
from determined_agent.output import line_splitter

HEAVY = {"dataclasses", "inspect", "pathlib", "urllib.parse", "asyncio", "subprocess"}


def run_python(program: str, *arguments: str) -> str:
    argv = [sys.executable, "-I", "-S", "-c", program, *arguments]
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout


def test_a_copy_contains_the_compiled_files_and_python_uses_them(tmp_path: Path) -> None:
    """The folder is read-only in a container, so that every start would compile the modules again."""
    # This Python may write no compiled files.
    py_compile.compile(line_splitter.__file__, doraise=True)
    folder = keep_shim(tmp_path)
    module = folder / "determined_agent" / "output" / "line_splitter.py"
    compiled = Path(importlib.util.cache_from_source(str(module)))
    # Python uses a compiled file that records the time and the size of its module, without reading the module.
    marked = compiled.read_bytes().replace(b"LineSplitter", b"LineSpl1tter")
    compiled.write_bytes(marked)
    program = (
        "import sys; sys.path.append(sys.argv[1]); import determined_agent.output.line_splitter as m; print(*vars(m))"
    )
    assert "LineSpl1tter" in run_python(program, str(folder)).split()


def test_a_compiled_file_that_cannot_be_read_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user with umask 077 leaves such files; root, who runs these tests, could read them."""
    copy = shutil.copy2

    def refuse_compiled(source: Path | str, target: Path | str) -> object:
        if str(source).endswith(".pyc"):
            raise PermissionError(13, "Permission denied", str(source))
        return copy(source, target)

    monkeypatch.setattr(shutil, "copy2", refuse_compiled)
    folder = keep_shim(tmp_path)
    assert (folder / "determined_agent" / "output" / "line_splitter.py").exists()
    assert list(folder.rglob("*.pyc")) == []


def test_the_shim_imports_no_slow_module(tmp_path: Path) -> None:
    program = "import sys; sys.path.append(sys.argv[1]); sys.argv = ['', '', sys.argv[1]]; "
    program += "import determined_agent.task_process.shim; print(*sys.modules)"
    assert not HEAVY & set(run_python(program, str(keep_shim(tmp_path))).split())
