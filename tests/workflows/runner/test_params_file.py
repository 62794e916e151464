"""Files of parameters: errors with their position before any command runs, warnings, and substitution."""

import random
import re
from pathlib import Path

import pytest
from tests.workflows.runner.conftest import Run

from determined_workflows.runner import grid, params_file, substitution
from determined_workflows.runner.errors import ParamsFileError
from determined_workflows.runner.grid import Selection
from determined_workflows.runner.params_file import ParamsFile, Template
from determined_workflows.runner.yaml_documents import Place

HEAD = "resource: [0]\ntemplate:\n  train: >\n    train\n      --lr {lr}\n"

BOMB = "---\na0: &a0 [1, 1, 1, 1, 1, 1, 1, 1]\n" + "".join(
    f"a{number}: &a{number} [{', '.join([f'*a{number - 1}'] * 8)}]\n" for number in range(1, 9)
)
"""Nine lines with more than a hundred million values."""
INVALID_FILES = {
    "alias of what it is in": (f"{HEAD}---\nlr: &all [1, *all]\n", "7:5: this value contains itself, by an alias"),
    "aliases of aliases": (f"{HEAD}{BOMB}", "7:16: with its aliases the document has more than 300,000 values"),
    "placeholder without a value": (
        f"{HEAD}---\nseed: [1]\n",
        "5:12: {lr} in the command train has no value: default and the choices in line 7 do not set it",
    ),
    "value for some choices only": (
        f"{HEAD}---\nlr: [1]\n---\nseed: 1\n",
        "5:12: {lr} in the command train has no value: default and the choices in line 9 do not set it",
    ),
    "both forms": (
        "resource: [0]\ntemplate:\n  a: a {lr}\n  b: b {lr} [lr]\n---\nlr: 1\n",
        "4:13: lr is written as {lr} and as [lr]; use one form in a command",
    ),
    "alias cases that disagree": (
        "resource: [0]\ntemplate: {a: b}\nalias:\n  size:\n    small: {dim: 1}\n    big: {dim: 2, heads: 3}\n---\nx: 1\n",
        "6:5: all cases of alias size must set the same parameters: dim, but big sets dim, heads",
    ),
    "alias in a template": (
        "resource: [0]\ntemplate: {a: 'b {size}'}\nalias: {size: {small: {dim: 1}}}\n---\nsize: small\n",
        "2:18: {size}: size is an alias; write the parameters that it sets",
    ),
    "case that is missing": (
        "resource: [0]\ntemplate: {a: b}\nalias: {size: {small: {dim: 1}}}\n---\nsize: [small, huge]\n",
        "5:1: alias size has no case 'huge'; it has small",
    ),
    "no value": (
        f"{HEAD}---\nlr:\n",
        "5:12: {lr} in the command train: the value of lr is null; it must be text, a number, true or false (line 7)",
    ),
    "nested value": (
        f"{HEAD}---\nlr: [1, [2]]\n",
        "5:12: {lr} in the command train: the value of lr is a list; it must be text, a number, true or false (line 7)",
    ),
    "name of a command": (
        "resource: [0]\ntemplate: {a/b: c}\n---\nx: 1\n",
        "2:12: the name of a command is text without slashes and control characters, not 'a/b'",
    ),
    "name of a parameter": (f"{HEAD}---\na/b: 1\n", "7:1: the name of a parameter is text without slashes, not 'a/b'"),
    "no template": (
        "resource: [0]\n---\nx: 1\n",
        "1:1: template must map names to commands, at least one",
    ),
    "no choices": (HEAD, "6:1: no choices: add `---` and a document such as `seed: [1, 2]`"),
    "syntax": ("a: b: c\n", "1:5: this is not YAML: mapping values are not allowed in this context"),
    "null character": (
        f'{HEAD}---\nlr: "a\\0"\n',
        "7:1: the value of lr contains a null character, which no command can have",
    ),
}


ACCEPTED_FILES = {
    "both forms": ("resource: [0]\ntemplate: {a: 'a {lr}', b: 'b [lr]'}\n---\nlr: 1\n", {"Lr_1": "a 1"}, None),
    "boolean in braces": ("resource: [0]\ntemplate: {a: 'a {lr}'}\n---\nlr: true\n", {"Lr_T": "a True"}, None),
    "set twice": (
        "resource: [0]\ntemplate: {a: 'b {dim}'}\nalias: {size: {small: {dim: 1}}}\n---\nsize: small\ndim: 3\n",
        {"Size_small-Dim_3": "b 1"},
        "5:1: warning: dim is set by dim and by size; size counts",
    ),
    "set by two aliases": (
        "resource: [0]\ntemplate: {a: 'b {d}'}\nalias: {s: {x: {d: 1}}, t: {y: {d: 2}}}\n---\nt: y\ns: x\n",
        {"T_y-S_x": "b 1"},
        "6:1: warning: d is set by t and by s; s counts",
    ),
    "equal names": (
        "resource: [0]\ntemplate: {a: 'a {lr}'}\n---\nlr: [0.1, '0.1']\n",
        {"Lr_0.1": "a 0.1"},
        "4:1: warning: two different tasks have the name Lr_0.1, and only the first runs",
    ),
    "null that no command uses": ("resource: [0]\ntemplate: {a: b}\n---\nx: [null]\n", {"X_None": "b"}, None),
    "nested value that no command uses": (
        "resource: [0]\ntemplate: {a: b}\n---\nx: [[1, 2], {a: 1}]\n",
        {"X_[1, 2]": "b", "X_{'a': 1}": "b"},
        None,
    ),
    "empty list": ("resource: [0]\ntemplate: {a: b}\n---\nx: []\n", {}, "4:1: warning: x has no values"),
    "title alone": ("resource: [0]\ntemplate: {a: b}\n---\n_title: t\n", {"": "b"}, "this document has no parameters"),
    "reserved": (
        "resource: [0]\ntemplate: {a: 'b {_name}'}\n---\n_name: 1\n",
        {"Name_1": "b Name_1"},
        "4:1: warning: _name only names the folder",
    ),
    "duplicate key": (
        "resource: [0]\ntemplate: {a: 'b {x}'}\n---\nx: 1\nx: 2\n",
        {"X_2": "b 2"},
        "5:1: warning: duplicate key 'x': this value counts",
    ),
    "unknown command": (
        "resource: [0]\ntemplate: {a: b}\n---\nx: 1\n_cmd: test\n",
        {},
        "5:1: warning: no command is called test; there are a",
    ),
    "unknown key": (
        "resource: [0]\ntemplate: {a: b}\nanchors: 1\n---\nx: 1\n",
        {"X_1": "b"},
        '3:1: warning: unknown key "anchors" has no effect',
    ),
    "merge key": (
        "resource: [0]\ntemplate: {a: 'b {x}'}\ndefault: &d {x: 5}\nalias: {s: {p: {<<: *d}}}\n---\ns: p\n",
        {"S_p": "b 5"},
        None,
    ),
    "name of a command": ("resource: [0]\ntemplate: {a b: c}\n---\nx: 1\n", {"X_1": "c"}, None),
    "empty command": ("resource: [0]\ntemplate: {a: ''}\n---\nx: 1\n", {"X_1": ""}, None),
    "resource": (
        "resource: [1.5]\ntemplate: {a: b}\n---\nx: 1\n",
        {"X_1": "b"},
        "1:12: warning: a resource is a number or text",
    ),
    "name of a parameter": (
        "resource: [0]\ntemplate: {a: 'b {a.b}'}\n---\na.b: 1\n",
        {"A.B_1": "b {a.b}"},
        None,
    ),
    "folder in brackets": (
        "resource: [0]\ntemplate: {a: 'b [_output]'}\n---\nx: 1\n",
        {"X_1": "b --_output output/X_1"},
        None,
    ),
    "control characters": (
        'resource: [0]\ntemplate: {a: b}\n---\nlr: "a\\nb"\n',
        {"Lr_a\nb": "b"},
        "4:1: warning: the name of a task has control characters: 'Lr_a\\nb'",
    ),
}


@pytest.mark.parametrize("name", ACCEPTED_FILES)
def test_a_file_that_the_original_accepts_is_accepted_with_a_warning_about_likely_mistakes(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    text, expected, warning = ACCEPTED_FILES[name]
    tasks = grid.tasks(parse(text), Path("output"), Selection())
    assert {task.name: task.command(task.templates[0], "T") for task in tasks} == expected
    if warning is None:
        assert caplog.text == ""
    else:
        assert warning in caplog.text


def test_a_name_with_a_line_break_is_one_line_of_the_console(run: Run) -> None:
    _, lines = run('resource: [0]\ntemplate: {a: "true"}\n---\nx: "a\\nb"\n')
    assert "START   gpu: 0, a: 1/ 1, 'output/X_a\\nb'" in lines


@pytest.mark.parametrize("name", INVALID_FILES)
def test_an_invalid_params_file_is_refused_with_the_position_and_runs_no_command(
    name: str, run: Run, folder: Path
) -> None:
    text, message = INVALID_FILES[name]
    code, lines = run(text)
    assert (code, lines) == (4, [f"det: params.yaml:{message}"])
    assert not (folder / "output").exists()


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("-c", "test"), "no command is called test; there are train"),
        (("-t", "x"), "no choices have the title x; there are none"),
        (("-y", "other.yaml"), "other.yaml does not exist; `det runner init` writes an example"),
    ],
)
def test_flags_that_select_nothing_are_errors(run: Run, flags: tuple[str, ...], message: str) -> None:
    assert run(f"{HEAD}---\nlr: 1\n", *flags) == (4, [f"det: {message}"])


def parse(text: str) -> ParamsFile:
    return params_file.parse(text, "params.yaml")


def test_documents_are_concatenated_and_equal_points_run_once() -> None:
    file = parse(f"{HEAD}default: {{lr: 1}}\n---\nlr: [1, 2]\nseed: [1, 2]\n---\nseed: 2\nlr: [1.0, 3]\n")
    names = [task.name for task in grid.tasks(file, Path("output"), Selection())]
    assert names == ["Lr_1-Seed_1", "Lr_1-Seed_2", "Lr_2-Seed_1", "Lr_2-Seed_2", "Seed_2-Lr_3"]


def test_the_commands_of_equal_points_are_one_task() -> None:
    file = parse(
        "resource: [0]\ntemplate: {train: a, avg: b, test: c}\n"
        "---\n_cmd: [test, avg]\nx: [1, 2]\n---\n_cmd: train\nx: 1\n"
    )
    tasks = grid.tasks(file, Path("output"), Selection())
    assert [(task.name, [template.name for template in task.templates]) for task in tasks] == [
        ("X_1", ["train", "avg", "test"]),
        ("X_2", ["avg", "test"]),
    ]


def test_title_command_and_sample_select_tasks_and_commands() -> None:
    file = parse(
        "resource: [0]\ntemplate: {train: a, avg: b, test: c}\n"
        "---\n_title: one\n_cmd: [test, train]\nx: [1, 2, 3, 4]\n---\n_title: two\nx: 9\n"
    )
    titled = grid.tasks(file, Path("output"), Selection(title="one", sample=2))
    assert len(titled) == 2
    assert [template.name for template in titled[0].templates] == ["train", "test"]
    averaging = grid.tasks(file, Path("output"), Selection(commands=["avg"]))
    assert [[template.name for template in task.templates] for task in averaging] == [["avg"]] * 5


def test_a_sample_is_drawn_from_the_whole_of_a_grid_that_is_too_large_to_list(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    columns = "".join(f"p{n}: [{', '.join(map(str, range(10)))}]\n" for n in range(7))
    file = parse(f"resource: [0]\ntemplate: {{a: a}}\n---\n{columns}")
    monkeypatch.setattr(random, "sample", random.Random(1).sample)
    found = grid.tasks(file, Path("output"), Selection(sample=100))
    assert len(found) == 100
    assert {task.params["p0"] for task in found} == set(range(10))
    values = ", ".join(map(str, range(2000)))
    wide = parse("resource: [0]\ntemplate: {a: a}\n---\n" + "".join(f"p{n}: [{values}]\n" for n in range(6)))
    found = grid.tasks(wide, Path("output"), Selection(sample=20))
    assert len(found) == 20
    assert len({task.params["p0"] for task in found}) > 1
    monkeypatch.setattr(grid, "MAX_TASKS", 100)
    with pytest.raises(ParamsFileError, match="more than 100 tasks"):
        grid.tasks(wide, Path("output"), Selection(sample=200))


def test_a_sample_of_all_points_is_the_grid_in_its_order() -> None:
    file = parse("resource: [0]\ntemplate: {a: a}\n---\nx: [1, 2, 3]\ny: [4, 5]\n")
    whole = grid.tasks(file, Path("output"), Selection())
    assert grid.tasks(file, Path("output"), Selection(sample=6)) == whole
    assert grid.tasks(file, Path("output"), Selection(sample=9)) == whole


def test_an_alias_sets_its_parameters_and_gives_the_name_of_the_folder() -> None:
    file = parse(
        "resource: [0]\ntemplate: {a: 'run {dim} [deep]'}\ndefault: {dim: 1}\n"
        "alias: {size: {small: {dim: 2, deep: false}, big: {dim: 4, deep: true}}}\n---\nsize: [small, big]\n"
    )
    tasks = grid.tasks(file, Path("output"), Selection())
    assert [task.name for task in tasks] == ["Size_small", "Size_big"]
    assert [task.command(task.templates[0], "T") for task in tasks] == ["run 2 ", "run 4 --deep"]
    assert tasks[0].params == {"dim": 2, "deep": False}


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("echo '{\"lr\": {lr}}' {lr}", "echo '{\"lr\": 0.1}' 0.1"),
        ("awk '{ print $1 }' ${HOME} ${lr}", "awk '{ print $1 }' ${HOME} ${lr}"),
        ("ls x[0-9] [ -f x ]", "ls x[0-9] [ -f x ]"),
        ("a {text}; b [text]", "a '$(rm x); y'; b --text '$(rm x); y'"),
        ("a \\\n   b\n\n c {multi}", "a b c 'x\ny'"),
        ("[yes] [no] {_time}", "--yes  20260101.000000"),
    ],
)
def test_fill_replaces_placeholders_and_keeps_shell_syntax(template: str, expected: str) -> None:
    values: dict[str, params_file.Value] = {"lr": 0.1, "text": "$(rm x); y", "multi": "x\ny", "yes": True, "no": False}
    values["_time"] = "20260101.000000"
    assert substitution.fill(Template("t", template, Place("f", 1)), values) == expected


def test_parameters_that_no_command_uses_are_printed_as_orphans(run: Run) -> None:
    _, lines = run("resource: [0]\ntemplate: {a: 'true'}\n---\nseed: 1\n")
    assert lines[0] == "Orphan params: {'seed'}"
    assert re.fullmatch(r"START   gpu: 0, a: 1/ 1, output/Seed_1", lines[2])
