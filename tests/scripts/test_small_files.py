"""The check for modules that are too small to be files of their own."""

import importlib.util
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "small_files.py"
LARGE = "x = 1\n" * 25


@pytest.fixture
def check(tmp_path):
    """Returns a function that reports the problems of a tree of files under ``agent/pack``."""
    spec = importlib.util.spec_from_file_location("small_files", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    def run(files, reasons=()):
        for name, text in {"__init__.py": "", **files}.items():
            path = tmp_path / "agent" / "pack" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return module.problems(tmp_path, dict.fromkeys(reasons, "why"))

    return run


@pytest.mark.parametrize(
    "line", ["from pack.small import x", "from pack import small", "import pack.small", "from . import small"]
)
def test_a_small_module_with_one_importer_is_reported(check, line):
    (problem,) = check({"small.py": "x = 1\n", "one.py": f"{line}\n{LARGE}"})
    assert problem.startswith("agent/pack/small.py: under 25 lines, and only pack.one imports it")


def test_a_module_name_in_a_string_counts_as_an_import(check):
    (problem,) = check({"small.py": "x = 1\n", "one.py": f'TABLE = "pack.small:x"\n{LARGE}'})
    assert "only pack.one imports it" in problem


def test_a_module_without_an_importer_is_reported(check):
    (problem,) = check({"small.py": "x = 1\n"})
    assert "and nothing imports it" in problem


def test_a_small_module_with_two_importers_or_a_reason_is_accepted(check):
    files = {"small.py": "x = 1\n", "one.py": f"import pack.small\n{LARGE}", "two.py": f"import pack.small\n{LARGE}"}
    assert check({**files, "three.py": "x = 2\n"}, ["pack.three"]) == []


def test_a_reason_that_is_not_needed_is_reported(check):
    problems = check({"one.py": LARGE}, ["pack.one", "pack.gone"])
    assert problems == [f"scripts/small_files.py: pack.{name} needs no reason any more" for name in ("one", "gone")]
