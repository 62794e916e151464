"""The unmodified command line of 0.38.1 submits the experiments of the tutorial and the how-to pages."""

from pathlib import Path

import pytest
from tests.support.document_runner import Step, steps, typed, write
from tests.support.official_client import OFFICIAL
from tests.support.official_cluster import OfficialCluster, until
from tests.support.packages import make_wheel

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.official,
    pytest.mark.long,
    pytest.mark.xdist_group("documented-commands"),
    pytest.mark.budget(60, "starts the official client many times"),
]

DOCS = Path(__file__).parents[3] / "docs"
ENDED = ("STATE_COMPLETED", "STATE_ERROR", "STATE_CANCELED", "STATE_DELETED")
EXPERIMENT_SECONDS = 300.0
NOT_SUBMITTED = {
    "common-mistakes": "each of its submissions is a mistake, with the answer of our command line",
    "containers": "its image and engine are those of tests/e2e/containers/test_page.py",
    "local": "its commands run here, without a cluster",
}
"""Reasons for the pages whose submissions are left out."""
FAILS_ON_PURPOSE = {
    "debugging: det experiment create model/config.yaml model": "the page looks for the cause",
    'data: det experiment create model/config.yaml model --config data.path=$PWD/dataset || echo "exit code $?"': (
        "the context is too large"
    ),
}
"""Reasons for the commands that are left out."""
WITH_FILES_OF = {"horovod": "several-slots"}
"""Pages that continue with the files of another page."""


def is_submission(step: Step) -> bool:
    return step.name is None and step.text.startswith(("det experiment create ", "det e create "))


def submitted(page: Path) -> list[str]:
    """Returns the commands of a page that submit an experiment which completes."""
    commands = [step.text for step in steps(page) if is_submission(step) and " --local " not in step.text]
    return [command for command in commands if f"{page.stem}: {command}" not in FAILS_ON_PURPOSE]


def pages() -> list[str]:
    pages_to_follow = [*sorted((DOCS / "how-to").glob("*.md")), DOCS / "tutorial" / "index.md"]
    return [
        str(page.relative_to(DOCS)) for page in pages_to_follow if page.stem not in NOT_SUBMITTED and submitted(page)
    ]


def test_each_exception_is_a_page_or_a_command_of_the_documentation():
    page_of_name = {page.stem: page for page in (DOCS / "how-to").glob("*.md")}
    assert set(NOT_SUBMITTED) <= set(page_of_name)
    for exception in FAILS_ON_PURPOSE:
        name, _, command = exception.partition(": ")
        assert command in [step.text for step in steps(page_of_name[name])], exception
    assert len(pages()) > 10


@pytest.mark.parametrize("page", pages())
def test_the_official_client_submits_the_experiments_of_a_page(official: OfficialCluster, tmp_path: Path, page: str):
    path = DOCS / page
    if path.stem in WITH_FILES_OF:
        for step in steps(DOCS / "how-to" / f"{WITH_FILES_OF[path.stem]}.md"):
            if step.name is not None:
                write(step, tmp_path)
    wheels = make_wheel(tmp_path / "wheels", "einops", "0.8").parent
    offline = f" --config environment.environment_variables='[PIP_NO_INDEX=1, PIP_FIND_LINKS={wheels}]'"
    chosen = submitted(path)
    created: dict[int, str] = {}
    for step in steps(path):
        if step.name is not None:
            write(step, tmp_path)
        elif step.text in chosen:
            needs_index = step.text.split()[3].startswith(("packages/", "listed/"))
            command = step.text.removesuffix(" -f") + offline * needs_index
            output = run(official, command, tmp_path)
            assert "Created experiment " in output, f"{page}: {command}\n{output}"
            created[int(output.split("Created experiment ")[1].split()[0])] = command
        elif not step.text.startswith("det"):
            run(official, step.text, tmp_path)
    assert len(created) == len(chosen)
    states = {command: ended(official, number) for number, command in created.items()}
    assert set(states.values()) == {"STATE_COMPLETED"}, f"{states}\n{logs(official, created, states)}"


def run(official: OfficialCluster, command: str, folder: Path) -> str:
    """Runs a command in a shell that finds the official ``det``, and returns its output."""
    environ = official.environment
    environ["PATH"] = f"{OFFICIAL / 'bin'}:{environ['PATH']}"
    return typed(command, folder, environ).stdout


def ended(official: OfficialCluster, experiment: int) -> str:
    def state() -> str | None:
        found = str(official.experiment(experiment)["state"])
        return found if found in ENDED else None

    return until(state, within=EXPERIMENT_SECONDS)


def logs(official: OfficialCluster, created: dict[int, str], states: dict[str, str]) -> str:
    """Returns the last lines of the logs of experiments that did not complete."""
    failed = [number for number, command in created.items() if states[command] != "STATE_COMPLETED"]
    return "\n".join("\n".join(official.logs(number).splitlines()[-15:]) for number in failed)
