"""The tutorial and how-to pages work as written: their files are written and their commands run."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.document_reader import end_cluster, on_any_port, reader_environment, start_cluster
from tests.support.document_runner import follow
from tests.support.free_ports import free_port
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.budget(120, "follows a page with four trainings")]

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture
def environ(tmp_path: Path) -> Iterator[dict[str, str]]:
    """Yields the environment of somebody who has never used ``det``, and ends its cluster."""
    variables = reader_environment(tmp_path)
    try:
        yield variables
    finally:
        end_cluster(variables)


class Reader:
    """Runs a page's commands when a reader would: the pause during training, the others when the slot is free."""

    def __init__(self, environ: dict[str, str], trial: int) -> None:
        self._environ = environ
        self._trial = str(trial)
        self.attempts: list[int] = []

    def prepare(self, command: str) -> str:
        if command.startswith("det experiment pause"):
            wait_until(self._has_steps, within=90, what="a step of the trial")
        if command.startswith("det experiment activate"):
            wait_until(lambda: "PAUSED" in self._det("experiment", "list"), within=60, what="a free slot")
        if command.startswith("det down"):
            self.look_at_attempts()
        return on_any_port(command)

    def look_at_attempts(self) -> None:
        """Records the attempts so far, while the cluster runs."""
        trial = json.loads(self._det("trial", "describe", self._trial, "--json"))
        self.attempts = [attempt["run_id"] for attempt in trial["attempts"]]

    def _has_steps(self) -> bool:
        reports = json.loads(self._det("trial", "describe", self._trial, "--metrics", "--json"))["workloads"]
        return bool(reports)

    def _det(self, *words: str) -> str:
        return subprocess.run(["det", *words], env=self._environ, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("steps", [1500, pytest.param(10_000, marks=pytest.mark.long)])
def test_the_tutorial_works_as_written(tmp_path: Path, environ: dict[str, str], steps: int) -> None:
    """Uses fewer steps than the page, except in the long test."""
    reader = Reader(environ, trial=2)
    written = (DOCS / "tutorial" / "index.md").read_text(encoding="utf-8")
    assert "  steps: 10000\n" in written
    page = tmp_path / "index.md"
    page.write_text(written.replace("  steps: 10000\n", f"  steps: {steps}\n"), encoding="utf-8")
    follow(page, tmp_path, environ, prepare=reader.prepare)
    assert reader.attempts == [1, 2], "the trial was paused while it trained, and went on"


@pytest.mark.long  # test_the_tutorial_works_as_written follows a page through a pause as well
@pytest.mark.parametrize("page", ["lightning", "hugging-face", "keras"])
def test_the_page_about_a_third_party_framework_works_as_written(
    tmp_path: Path, environ: dict[str, str], page: str
) -> None:
    start_cluster(environ)
    reader = Reader(environ, trial=1)
    follow(DOCS / "how-to" / f"{page}.md", tmp_path, environ, prepare=reader.prepare)
    if not reader.attempts:
        reader.look_at_attempts()
    assert reader.attempts == [1, 2], "the trial was paused while it trained, and went on"


def test_each_common_mistake_gets_the_answer_of_the_page(tmp_path: Path, environ: dict[str, str]) -> None:
    page = DOCS / "how-to" / "common-mistakes.md"
    mistakes = page.read_text(encoding="utf-8").count("\n## ")
    assert mistakes == 15
    # An unused port replaces the default one, on which somebody's cluster may run.
    unused = free_port()

    def prepare(command: str) -> str:
        return f"DET_MASTER=localhost:{unused} {command}" if command == "det experiment list" else on_any_port(command)

    follow(page, tmp_path, environ, prepare=prepare, may_fail=True)


def test_the_page_about_the_sdk_works_as_written(tmp_path: Path, environ: dict[str, str]) -> None:
    start_cluster(environ)
    follow(DOCS / "how-to" / "python-sdk.md", tmp_path, environ)
