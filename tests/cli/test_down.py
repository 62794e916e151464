"""What `det down` says and its exit code, by what became of the tasks."""

from pathlib import Path

import pytest

from determined_cli.up import local_cluster


@pytest.mark.parametrize(
    ("outcome", "text"),
    [
        ((0, []), "stopped; fine"),
        ((1, ["abc", "def"]), "these tasks could not be stopped and still run: abc, def"),
        ((2, []), "could not check whether tasks still run"),
    ],
)
def test_the_exit_code_is_zero_only_if_all_tasks_have_ended(
    outcome: tuple[int, list[str]],
    text: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    monkeypatch.setattr(local_cluster, "end_tasks", lambda _folder: outcome)
    assert local_cluster._end_tasks(tmp_path, "stopped; fine") == outcome[0]
    assert text in capsys.readouterr().err
