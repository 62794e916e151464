"""The rule that allows real launchers only in tests/e2e."""

import importlib.util
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "launcher_rule.py"


def problems(folder: Path, path: str, text: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    spec = importlib.util.spec_from_file_location("launcher_rule", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    (folder / path).write_text(text)
    monkeypatch.chdir(folder)
    reported: list[str] = module.problems(Path(path))
    return reported


STARTS = [
    ("def test():\n    import horovod.torch", "imports the launcher horovod.torch"),
    ("pytest.importorskip('deepspeed')", "imports the launcher deepspeed"),
    ("from torch.distributed import run", "imports the launcher torch.distributed.run"),
    ("from tests.support import launchers", "imports tests.support.launchers"),
    ("from tests.support.layers import Container", "imports tests.support.layers.Container"),
    ("import subprocess\nargv = ['-m', 'torch.distributed.run']", "names torch.distributed.run"),
    ("import subprocess\nargv = ['horovodrun', '-np', '2']", "names horovodrun"),
    ("import subprocess\nargv = 'python -m determined.launch.deepspeed x'", "names determined.launch.deepspeed"),
    ("from asyncio.subprocess import PIPE\nargv = f'determined.launch.{layer}'", "names determined.launch.{}"),
]


@pytest.mark.parametrize(("text", "message"), STARTS)
def test_a_launcher_outside_the_end_to_end_tests_is_reported(tmp_path, monkeypatch, text, message):
    (problem,) = problems(tmp_path, "tests/harness/test_it.py", text, monkeypatch)
    assert problem.startswith("tests/harness/test_it.py: ")
    assert message in problem


@pytest.mark.parametrize(("text", "message"), STARTS)
def test_end_to_end_tests_may_start_launchers(tmp_path, monkeypatch, text, message):
    assert problems(tmp_path, "tests/e2e/launchers/test_it.py", text, monkeypatch) == []


@pytest.mark.parametrize(
    "text",
    [
        "from determined.pytorch import deepspeed",
        "from determined_launch import torch_distributed",
        "import torch.distributed",
        "argv = ['-m', 'torch.distributed.run']",
        '"""The line for torch.distributed.run."""\nimport subprocess',
        "import subprocess\nargv = ['-m', 'determined.launch.wrap_rank']",
    ],
)
def test_tests_of_our_own_layers_are_not_reported(tmp_path, monkeypatch, text):
    assert problems(tmp_path, "tests/launch/test_it.py", text, monkeypatch) == []
