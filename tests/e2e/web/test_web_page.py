"""The filters, keys and buttons in the documentation of the web page exist."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from tests.e2e.web import runs
from tests.e2e.web.visits import Visit
from tests.support.live_cluster import LiveCluster
from tests.support.live_trials import Experiment
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.e2e]

TEXT = (Path(__file__).parents[3] / "docs" / "how-to" / "web-page.md").read_text(encoding="utf-8")


def section(title: str) -> str:
    return TEXT.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def first_column(title: str) -> list[str]:
    """Returns the code of the first column of the table in a section, row by row."""
    rows = [line.split("|")[1] for line in section(title).splitlines() if line.startswith("| `")]
    return [code for row in rows for code in re.findall(r"`([^`]+)`", row)]


SCRIPT = """
import determined as det

with det.core.init() as core_context:
    core_context.train.report_validation_metrics(1, {"loss": 0.1})
    raise ValueError("ends with an error")
"""


@pytest.fixture(scope="module")
def ended(cluster: LiveCluster, tmp_path_factory: pytest.TempPathFactory) -> Experiment:
    """Creates an experiment with the hyperparameter, the metric and the error of the page's examples."""
    context = tmp_path_factory.mktemp("context")
    (context / "train.py").write_text(SCRIPT, encoding="utf-8")
    searcher = {"name": "single", "metric": "loss"}
    values = {"lr": 0.005}
    created = runs.quick(
        cluster, "digits, read about", context=context, entry="train.py", searcher=searcher, hyperparameters=values
    )
    created.ended("ERROR")
    return created


@pytest.fixture
def page(visitor: Callable[..., Visit], ended: Experiment) -> Page:
    page = visitor().page("/")
    expect(page.get_by_role("link", name="digits, read about")).to_be_visible()
    return page


def test_each_filter_of_the_documented_table_is_accepted(page: Page) -> None:
    typed = first_column("Finding experiments")
    assert len(typed) >= 7
    states = re.findall(r"\b([a-z]+)\b", section("Finding experiments").partition("| also ")[2].partition(" |")[0])
    assert len(states) == 7
    box = page.get_by_role("combobox", name="Filter the experiments")
    for text in [*typed[:7], *(f"state = {state}" for state in states)]:
        box.fill("state = nonsense")
        expect(page.get_by_role("alert")).to_be_visible()
        box.fill(text)
        expect(page.get_by_role("alert")).to_have_count(0)


@pytest.mark.long  # the test of filters reads the same page
def test_each_key_of_the_documented_table_is_offered(page: Page, cluster: LiveCluster, ended: Experiment) -> None:
    documented = {key for key in first_column("Keys") if key not in ("Enter", "Shift-Enter", "Esc")}
    assert len(documented) > 15
    trial = f"/trials/{ended.trial_id}"
    offered: set[str] = set()

    def are_all_offered() -> bool:
        # A list offers its keys only when it is the newest one, which may be after its first lines are displayed.
        for path, text in {
            "/": "digits, read about",
            f"/experiments/{ended.id}": "digits, read about",
            trial: "ends with an error",
            f"{trial}/logs": "ends with an error",
        }.items():
            page.goto(cluster.url + path)
            expect(page.get_by_role("main").get_by_text(text).first).to_be_visible()
            page.keyboard.press("?")
            shortcuts = page.get_by_role("dialog", name="Keyboard shortcuts")
            expect(shortcuts).to_be_visible()
            caps = shortcuts.locator("dd").all()
            offered.update(" ".join(cap.locator("kbd").all_inner_texts()) for cap in caps)
            page.keyboard.press("Escape")
        return documented <= offered

    wait_until(are_all_offered, within=60, what="every documented key is offered")


def test_the_buttons_and_tabs_that_the_page_names_exist(page: Page, cluster: LiveCluster, ended: Experiment) -> None:
    for name in ("Saved views", "Columns"):
        expect(page.get_by_role("button", name=name)).to_be_visible()
    page.goto(f"{cluster.url}/experiments/{ended.id}/metrics")
    for name in ("PNG", "CSV"):
        expect(page.get_by_role("button", name=name).first).to_be_visible()
    page.goto(f"{cluster.url}/compare?experiments={ended.id}")
    expect(page.get_by_text("+ Add run")).to_be_visible()
