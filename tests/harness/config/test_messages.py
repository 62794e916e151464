"""The diagnostics of invalid configurations: ``cases/NAME.yaml`` → ``cases/NAME.txt``."""

from pathlib import Path

import pytest

from determined.config import check

CASES = Path(__file__).parent / "cases"
MASTER = {"checkpoint_storage": {"type": "shared_fs", "host_path": "/checkpoints"}}


@pytest.mark.parametrize("case", sorted(path.stem for path in CASES.glob("*.yaml")))
def test_diagnostics_are_rendered_as_in_the_expected_file(case: str) -> None:
    checked = check((CASES / f"{case}.yaml").read_text(), name="exp.yaml", defaults=[MASTER])
    assert checked.render() + "\n" == (CASES / f"{case}.txt").read_text()
    assert checked.ok == (case == "warnings_only")


def test_diagnostics_are_in_the_order_of_the_file() -> None:
    for path in CASES.glob("*.yaml"):
        positions = [(diagnostic.line, diagnostic.column) for diagnostic in check(path.read_text()).diagnostics]
        assert positions == sorted(positions)


def test_every_error_code_is_explained_in_the_documentation() -> None:
    text = (Path(__file__).parents[3] / "docs" / "reference" / "error-codes.md").read_text()
    codes = {
        diagnostic.code
        for path in CASES.glob("*.yaml")
        for diagnostic in check(path.read_text(), defaults=[MASTER]).diagnostics
    }
    assert {code for code in codes if f"`{code}`" not in text} == set()


def test_binary_huge_and_deeply_nested_texts_are_errors() -> None:
    assert [diagnostic.code for diagnostic in check("name: a\nb\0c").diagnostics] == ["E101"]
    assert [diagnostic.code for diagnostic in check("a" * 2_000_000).diagnostics] == ["E102"]
    assert [diagnostic.code for diagnostic in check("[" * 100_000).diagnostics] == ["E106"]
