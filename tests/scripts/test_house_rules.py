"""The rules of the project that no linter checks."""

from pathlib import Path

import pytest
from scripts.house_rules import problems


@pytest.mark.parametrize(
    "line",
    [
        "from determined_master.wiring.services import Services",
        "import determined_master.wiring.services as container",
        "from determined_master import notifications, wiring",
        "writer = request.app.state.services.writer",
    ],
)
def test_an_endpoint_that_uses_the_container_of_services_is_reported(tmp_path: Path, line: str) -> None:
    folder = tmp_path / "determined_master" / "api" / "v1"
    folder.mkdir(parents=True)
    endpoint = folder / "nouns.py"
    endpoint.write_text(f"{line}\n")
    assert problems(endpoint) == [f"{endpoint}: an endpoint takes the services that it uses, not the container"]
    endpoint.write_text("from determined_master.api.dependencies import ClockDep\n")
    assert problems(endpoint) == []


@pytest.mark.parametrize(
    "line",
    ["line = node.start_mark.line", 'getattr(error, "problem_mark", None)', "root = yaml.compose(text)"],
)
def test_a_module_that_reads_places_of_yaml_by_itself_is_reported(tmp_path: Path, line: str) -> None:
    module = tmp_path / "nouns.py"
    module.write_text(f"{line}\n")
    assert problems(module) == [f"{module}: determined.yaml_places reads lines and columns of YAML"]
    module.write_text("mark = RolePlan.end_mark(folder)\nyaml.safe_load(text)\n")
    assert problems(module) == []


@pytest.mark.parametrize(
    "statement",
    [
        "insert(JobRow)",
        "postgresql.insert(_C)",
        "update(JobRow).values(weight=1)",
        "delete(JobRow)",
        "session.add(row)",
        "insert_rows(session, JobRow, rows)",
    ],
)
def test_a_function_that_takes_a_read_session_and_changes_rows_is_reported(tmp_path: Path, statement: str) -> None:
    module = tmp_path / "master" / "repository.py"
    module.parent.mkdir()
    text = f"async def save(session: ReadSession) -> None:\n    await run(session, {statement})\n"
    module.write_text(text)
    assert problems(module) == [f"{module}:2: save takes a ReadSession and changes rows"]
    module.write_text(text.replace("ReadSession", "WriteSession"))
    assert problems(module) == []
    module.write_text("def names(session: ReadSession) -> None:\n    names_by_id.update(rows)\n")
    assert problems(module) == []
