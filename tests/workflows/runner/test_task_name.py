"""Names of tasks, which equal those of the original runner."""

import shlex
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from determined_workflows.runner.params_file import Template, Value
from determined_workflows.runner.substitution import fill
from determined_workflows.runner.task_name import short_param, short_value
from determined_workflows.runner.yaml_documents import Place


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("norm", "Norm"),
        ("ab", "Ab"),
        ("a_b", "aB"),
        ("aa_bb_cc", "aabbCc"),
        ("aaa_bbb_ccc", "AaBbCcc"),
        ("warmup-steps", "WaSteps"),
        ("camelCase", "Camelcase"),
        ("some_long-param", "SoParam"),
        ("long-some_param", "LoSome_Param"),
        ("ABC_def", "AbDef"),
        ("x__y", "xY"),
        ("lr_", "lr"),
        ("p1_p2", "p1P2"),
    ],
)
def test_short_param_equals_the_name_of_the_original(name: str, expected: str) -> None:
    """The original printed the expected names."""
    assert short_param(name) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1.0, "1"),
        (0.00001, "1e-05"),
        (12345678, "1.23457e+07"),
        (float("inf"), "inf"),
        (10**400, "0" * 100),
        (True, "T"),
        (False, "F"),
        ("1e-3", "1e-3"),
        ("none/x", "none_x"),
        ("/none/x/", "none_x_"),
        ("//none", "none"),
        ("x" * 60 + "y" * 60, "x" * 40 + "y" * 60),
        ("data/file.txt", "file.txt"),
        ("data/", ""),
        ("./data", "data"),
    ],
)
def test_short_value_equals_the_name_of_the_original(
    value: Value, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "file.txt").touch()
    monkeypatch.chdir(tmp_path)
    assert short_value(value) == expected


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])))
@settings(deadline=None)
def test_fill_quotes_every_text_as_one_word_of_the_shell(text: str) -> None:
    template = Template("t", "run {x} [x]", Place("f", 1))
    assert shlex.split(fill(template, {"x": text})) == ["run", text, "--x", text]
