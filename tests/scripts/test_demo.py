"""``make demo``: its output into a file has no progress bars."""

import importlib.util
from pathlib import Path

import pytest

from determined.client.session import Session


class HalfWay(Session):
    """A session whose trial is at 60 percent."""

    def __init__(self) -> None:
        super().__init__("http://127.0.0.1:1")

    def get(self, path: str, query: object = None, **options: object) -> dict[str, object]:
        return {"state": "RUNNING", "progress": 0.6, "steps": 60, "metricName": "loss", "bestMetric": 0.5}


def test_the_demo_prints_no_progress_bar_into_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    path = Path(__file__).parents[2] / "examples" / "demo.py"
    spec = importlib.util.spec_from_file_location("demo", path)
    assert spec is not None
    assert spec.loader is not None
    demo = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(demo)
    demo.follow(HalfWay(), until=0.5)
    out = capsys.readouterr().out
    assert "trial 1 RUNNING   step  60  best loss 0.5000\n" in out
    assert "#" not in out
    assert "\r" not in out
