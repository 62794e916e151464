"""``det experiment continue``: the request that it sends, and the error about a refusal."""

from pathlib import Path
from typing import Any

from .conftest import Det, FakeMaster, Request

PATH = "POST /api/v1/experiments/continue"


def test_continue_sends_the_settings_to_change(fake: FakeMaster, det: Det, tmp_path: Path) -> None:
    fake.answers[PATH] = {"experiment": {"id": 3}}
    longer = tmp_path / "longer.yaml"
    longer.write_text("max_restarts: 2  # more\n")
    assert det("e", "continue", "3").out == "Continued experiment 3\n"
    det("e", "continue", "3", "--config-file", str(longer))
    det("e", "continue", "3", "--config-file", str(longer), "--config", "name=b")
    det("e", "continue", "3", "--config", "searcher.max_length.batches=9")
    assert [request.json for request in fake.requests_to(PATH)] == [
        {"id": 3, "overrideConfig": text}
        for text in (
            "",
            "max_restarts: 2  # more\n",
            "max_restarts: 2\nname: b\n",
            "searcher:\n  max_length:\n    batches: 9\n",
        )
    ]


def test_continue_prints_the_position_of_a_setting_that_cannot_change(
    fake: FakeMaster, det: Det, tmp_path: Path
) -> None:
    problem = {
        "severity": "error",
        "code": "E211",
        "message": '"searcher.metric" cannot change when an experiment is continued',
        "path": "searcher.metric",
        "line": 2,
        "column": 3,
        "hint": "fork the experiment",
    }

    def refuse(_: Request) -> Any:
        return 400, {"error": {"code": 3, "reason": "InvalidArgument", "error": "bad"}, "diagnostics": [problem]}

    fake.answers[PATH] = refuse
    config = tmp_path / "c.yaml"
    config.write_text("searcher:\n  metric: other\n")
    outcome = det("e", "continue", "3", "--config-file", str(config))
    assert outcome.code == 4
    assert f'{config}:2:3: error[E211]: "searcher.metric" cannot change' in outcome.err
