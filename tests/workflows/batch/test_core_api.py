"""The script of a command, and if it uses the Core API."""

from pathlib import Path

import pytest

from determined_workflows.batch import core_api


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("python main.py --config other.yaml", "main.py"),
        ("torchrun --standalone 'src/train.py' a", "src/train.py"),
        ("python -m pkg.train", "pkg/train.py"),
        ("python -m pkg", "pkg/__main__.py"),
        ("python3 -m determined.launch.torch_distributed -m -- pkg", None),
        ("wandb agent --count 1 a/b/c", None),
        ("python absent.py", None),
        ("python 'main.py", None),
    ],
)
def test_the_script_of_a_command_is_found_in_the_project(tmp_path: Path, command: str, name: str | None) -> None:
    for path in ("main.py", "src/train.py", "pkg/train.py", "pkg/__main__.py"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).touch()
    assert core_api.script_of(command, tmp_path) == (tmp_path / name if name else None)


@pytest.mark.parametrize(
    ("text", "is_used"),
    [
        ("import determined as det\nwith det.core.init() as core:\n    pass", True),
        ("from determined import core", True),
        ("from determined import experimental, core as c", True),
        ("import determined.core", True),
        ("import determined", False),
        ("# det.core would be better", False),
        ("import torch\nscore = 1", False),
    ],
)
def test_a_script_that_names_the_core_api_uses_it(tmp_path: Path, text: str, is_used: bool) -> None:
    script = tmp_path / "main.py"
    script.write_text(text)
    assert core_api.is_used(script) is is_used
    assert ("it can be paused" in core_api.note(script)) is is_used
    assert ("starts anew" in core_api.note(script)) is not is_used


def test_a_command_without_a_script_starts_anew() -> None:
    assert "starts anew" in core_api.note(None)
