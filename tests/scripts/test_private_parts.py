"""The rule about private parts of libraries: what it finds in a file, and what it compares with the page."""

import ast
from pathlib import Path

import pytest
from scripts.private_parts import PAGE, own_names, parts_used, problems

ROW = "| `lib` | `lib._inner`, `_part` | `pack/code/module.py` | Reason. | `tests/test_part.py` |\n"
CODE = "import lib\nfrom lib._inner import Thing\nThing()._part\n"


def found(text: str) -> list[str]:
    tree = ast.parse(text)
    return [part for _, part in parts_used(tree, own_names([tree]), {"ours"}, ["lib.protocols"])]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("from lib._inner import Thing", ["lib._inner.Thing"]),
        ("import lib._inner", ["lib._inner"]),
        ("from lib.protocols.http import Protocol", ["lib.protocols.http.Protocol"]),
        ("import lib\nlib._part()", ["_part"]),
        ("import lib\ndef f(thing: lib.Thing): return thing._part\ndef _part(): ...", ["_part"]),
        ("import lib\nthing = lib.make()\nthing._part", ["_part"]),
        ("def f(thing): return getattr(thing, '_part', None)", ["_part"]),
        ("def f(thing): return thing.inner._part", ["_part"]),
    ],
)
def test_private_modules_and_attributes_of_libraries_are_found(text: str, parts: list[str]) -> None:
    assert found(text) == parts


@pytest.mark.parametrize(
    "text",
    [
        "import os\nos._exit(1)",
        "from ours._inner import thing\nthing._part",
        "from argparse import ArgumentParser\nparser = ArgumentParser()\nparser._actions",
        "class A:\n    def f(self): return self._part",
        "class A:\n    def __init__(self): self._part = 1\ndef f(other): return other._part",
        "def f(row): return row._asdict()",
        "def f(thing): return thing.__dict__",
        "from lib import part\npart.public",
    ],
)
def test_own_names_and_the_standard_library_are_not_reported(text: str) -> None:
    assert found(text) == []


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for file, text in {
        "pack/code/module.py": CODE,
        str(PAGE): ROW,
        "tests/test_part.py": "",
        "pyproject.toml": '[project]\ndependencies = ["lib>=1,<2"]\n[project.optional-dependencies]\nx = ["lib==1.2"]\n',
    }.items():
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(text)
    return tmp_path


def test_listed_parts_of_a_bounded_library_are_accepted(project: Path) -> None:
    assert problems(project, ["pack"]) == []


def test_a_part_that_is_not_listed_for_its_file_is_reported(project: Path) -> None:
    (project / "pack/code/other.py").write_text("from lib import thing\nthing._part\n")
    (project / "pack/code/module.py").write_text(CODE + "Thing()._more\n")
    assert [each.partition(" is ")[0] for each in problems(project, ["pack"])] == [
        "pack/code/module.py:4: _more",
        "pack/code/other.py:2: _part",
    ]


def test_a_row_whose_part_file_or_test_is_gone_is_reported(project: Path) -> None:
    (project / "pack/code/module.py").write_text("import lib\n")
    (project / "tests/test_part.py").unlink()
    assert problems(project, ["pack"]) == [
        f"{PAGE}: pack/code/module.py uses none of the parts",
        f"{PAGE}: lib._inner is not used",
        f"{PAGE}: _part is not used",
        f"{PAGE}: there is no tests/test_part.py",
    ]


def test_a_library_without_an_upper_bound_is_reported(project: Path) -> None:
    (project / "pyproject.toml").write_text('[project]\ndependencies = ["lib>=1"]\noptional-dependencies = {}\n')
    assert problems(project, ["pack"]) == [
        'pyproject.toml: "lib>=1" has no upper bound, but private parts of it are used'
    ]
