"""The how-to page about containers works as written with a real engine."""

from pathlib import Path

import pytest
from tests.support.container_engine import TASK_IMAGE
from tests.support.document_reader import end_cluster, on_any_port, reader_environment
from tests.support.document_runner import follow

pytestmark = [pytest.mark.e2e]

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "containers.md"


def test_the_page_about_containers_works_as_written(engine: None, tmp_path: Path) -> None:
    environ = reader_environment(tmp_path)

    def prepare(command: str) -> str:
        config = tmp_path / "boxed" / "config.yaml"
        if command.startswith("det experiment create"):
            config.write_text(config.read_text().replace("IMAGE", TASK_IMAGE))
        return on_any_port(command)

    try:
        assert follow(PAGE, tmp_path, environ, prepare=prepare)
    finally:
        end_cluster(environ)
