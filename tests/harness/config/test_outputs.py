"""The key ``outputs``: folders below the work folder, and none inside another."""

import pytest

from determined.config import check

BASE = {"checkpoint_storage": {"type": "shared_fs", "host_path": "/checkpoints"}}
SMALL = "entrypoint: python3 train.py\nsearcher: {name: single, metric: loss}\n"


def test_outputs_are_empty_by_default_and_get_their_shortest_form() -> None:
    for given, stored in [("", []), ("outputs: [runs/, ./a//b, 'with space']", ["runs", "a/b", "with space"])]:
        checked = check(SMALL + given, defaults=[BASE])
        assert checked.config is not None, checked.render()
        assert checked.config.to_json()["outputs"] == stored


@pytest.mark.parametrize(
    ("outputs", "code", "text"),
    [
        ("runs", "E201", "expected a list of folders such as [runs/], got a text"),
        ("[3]", "E201", "expected the name of a folder, got a whole number (3)"),
        ("[/data/runs]", "E206", '"/data/runs" is absolute; name a folder below the work folder'),
        ("[a/../../b]", "E206", '"a/../../b" leaves the work folder'),
        ("[.]", "E206", '"." is the whole work folder'),
        ("['']", "E206", '"" is the whole work folder'),
        ("[./]", "E206", '"./" is the whole work folder'),
        ('["a\\nb"]', "E206", "not the name of a folder"),
        (f"[{'x' * 1025}]", "E206", "not the name of a folder"),
        ("[metadata.json]", "E206", "the name of a file that each checkpoint has"),
        ("[runs, b, runs/a]", "E302", '"runs/a" and "runs" contain each other; name the outer folder only'),
        ("[runs/a, runs]", "E302", '"runs" and "runs/a" contain each other'),
        ("[runs, ./runs/]", "E302", '"runs" and "runs" contain each other'),
        (str([f"f{i}" for i in range(17)]), "E205", "17 folders; at most 16"),
    ],
)
def test_a_wrong_folder_is_named_with_its_line(outputs: str, code: str, text: str) -> None:
    checked = check(f"{SMALL}outputs: {outputs}\n", defaults=[BASE])
    assert checked.config is None
    [found] = checked.diagnostics
    assert (found.code, found.line) == (code, 3)
    assert text in found.message
