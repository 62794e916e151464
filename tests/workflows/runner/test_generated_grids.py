"""Generated files of parameters: mlrunner 0.5.9 and our runner give the same tasks, names, commands and files."""

import random
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.workflows.runner.test_original import ORIGINAL, OURS, THEIRS, tree

FILES = 40
FAST = 2
"""Number of files that every run of the tests uses."""
PARAMS: tuple[str, ...] = ("lr", "warmup_steps", "label-smoothing", "use-amp", "normalization_type", "seed", "étape")
VALUES: tuple[Any, ...] = (
    *(0, 1, 3, -2, 12345678, 0.1, 1e-05, 2.5e10, "batch", "a b", "a/b/c", "it's", "$HOME", "x" * 120, "", "0.5", "T"),
    *(True, False),
)
UNUSED: tuple[Any, ...] = (None, [1, 2], {"a": 1})
"""Values that are allowed in a name but not in a command."""
EXTRAS = (
    "quirk.dotted",
    "with space",
    "_mine",
)


def generated(number: int) -> str:
    """Returns the file of parameters with this number. Together, the files use every rule of the format."""
    draw = random.Random(number)
    params: list[str] = draw.sample(PARAMS, draw.randint(2, 5))
    default = {name: draw.choice(VALUES) for name in params}
    first: dict[Any, Any] = {"template": _templates(draw, params), "default": default, "resource": [0]}
    if draw.random() < 0.5:
        set_by_alias = draw.sample(params, draw.randint(1, 2))
        cases = {case: {name: draw.choice(VALUES) for name in set_by_alias} for case in ("small", "big", 3)}
        first["alias"] = {"size": cases}
    if draw.random() < 0.2:
        first["comment"] = "an unknown key"
    documents = [first]
    for position in range(draw.randint(1, 3)):
        documents.append(_choices(draw, params, first, position))
    text = yaml.safe_dump_all(documents, sort_keys=False, allow_unicode=True)
    return text + "seed2: 1\nseed2: [7, 8]\n" if draw.random() < 0.2 else text


def _templates(draw: random.Random, params: list[str]) -> dict[Any, str]:
    names = draw.sample(("prepare", "train", "avg model", "test"), draw.randint(1, 3))
    commands = {}
    for name in names:
        form = {param: draw.choice(("{%s}", "[%s]")) for param in params}  # one in each command
        words = [form[param] % param for param in draw.choices(params, k=3)]
        own = draw.choice(("{_output}", "{_name}", "[_name]", "'{\"k\": 1}'"))
        commands[name] = f"echo {' '.join(words)}\n   {own} {{1..3}}"
    return commands


def _choices(draw: random.Random, params: list[str], first: dict[Any, Any], position: int) -> dict[str, Any]:
    choices: dict[str, Any] = {f"grid{position}": position}  # makes tasks and names of all documents different
    for name in draw.sample(params, draw.randint(0, 2)):
        # One of each kind, because true and 1, or 1 and "1", have the same name.
        kinds = {f"{value:g}" if type(value) in (int, float) else str(value): value for value in draw.sample(VALUES, 2)}
        choices[name] = [
            value for value in kinds.values() if value not in (True, False) or isinstance(value, bool)
        ] or 5
    if "alias" in first and draw.random() < 0.7:
        choices["size"] = draw.sample(("small", "big", 3), 2)
    if draw.random() < 0.3:
        choices[draw.choice(EXTRAS)] = draw.choice((1, "a", [1, 2]))
    if draw.random() < 0.3:
        choices["nothing"] = [draw.choice(UNUSED)]
    if draw.random() < 0.3:
        choices["_title"] = "some"
    if draw.random() < 0.3:
        choices["_cmd"] = draw.sample(list(first["template"]), 1)
    return choices


@pytest.mark.parametrize(
    "number", [pytest.param(number, marks=pytest.mark.long if number >= FAST else ()) for number in range(FILES)]
)
def test_a_generated_grid_gives_the_same_files_as_the_original(number: int, tmp_path: Path) -> None:
    assert (ORIGINAL / "run").exists(), "the original is not installed: make mlrunner"
    text = generated(number)
    trees = []
    for name, argv in (("theirs", THEIRS), ("ours", OURS)):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "params.yaml").write_text(text, encoding="utf-8")
        done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}\n{text}"
        trees.append(tree(folder / "output"))
    theirs, ours = trees
    assert len(theirs) > 3
    assert ours == theirs, text


def test_the_generated_files_use_every_rule() -> None:
    texts = [generated(number) for number in range(FILES)]
    for words in (
        "alias:",
        "_title:",
        "_cmd:",
        "nothing:",
        "comment:",
        "_mine:",
        "quirk.dotted:",
        "seed2: 1",
        "avg model:",
    ):
        assert sum(words in text for text in texts) >= 3 or words in EXTRAS, words
        assert any(words in text for text in texts), words
