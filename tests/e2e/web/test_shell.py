"""A shell on the page of a trial that runs: keys, output, sizes, colours, its end, other tabs, and a restart."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from playwright.sync_api import Browser, Locator, Page, expect
from tests.e2e.web import runs
from tests.e2e.web.axe import problems
from tests.e2e.web.visits import NARROW, WIDE, Visit, visit
from tests.support.live_cluster import LiveCluster, live_cluster, log_in
from tests.support.live_trials import Experiment

WAITS = "import time; print('waits', flush=True); time.sleep(3600)"

pytestmark = pytest.mark.budget(60, "starts a trial for each test, and restarts a master")


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("context")
    (folder / "waits.py").write_text(WAITS)
    return folder


@pytest.fixture(scope="module")
def own_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveCluster]:
    """One whose master a test restarts."""
    with live_cluster(tmp_path_factory.mktemp("shell"), slots=2) as created:
        yield created


def waiting_trial(cluster: LiveCluster, context: Path) -> Experiment:
    environment = {"environment_variables": ["SHELL=/bin/sh"]}  # reads no files of this machine's user
    created = runs.quick(cluster, "waits for a visitor", context=context, entry="waits.py", environment=environment)
    created.running()
    return created


@pytest.fixture
def waiting(own_cluster: LiveCluster, context: Path) -> Iterator[Experiment]:
    """A trial without torch, which waits until the end of the test."""
    created = waiting_trial(own_cluster, context)
    yield created
    created.do("kill")
    created.nothing_left()


@pytest.fixture
def visitor(browser: Browser, own_cluster: LiveCluster) -> Iterator[Visit]:
    """A visit without an error in the console, such as one about the content security policy."""
    with visit(browser, own_cluster) as created:
        yield created
        assert [each for each in created.console_errors if "Content Security Policy" in each] == []


def opened(visitor: Visit, trial: Experiment) -> Page:
    """Opens a shell from the page of a trial."""
    page = visitor.page(f"/trials/{trial.trial_id}/curves")
    page.get_by_role("link", name="Shell", exact=True).click()
    page.get_by_role("button", name="Open a shell").click()
    connected(page)
    expect(rows(page)).to_contain_text(re.compile("[#$] "))
    return page


def connected(page: Page) -> None:
    expect(shell(page).get_by_role("status")).to_have_text("Connected")


def shell(page: Page) -> Locator:
    return page.get_by_role("region", name="Shell", exact=True)


def rows(page: Page) -> Locator:
    return page.locator(".xterm-rows")


def enter(page: Page, line: str) -> None:
    page.keyboard.type(line)
    page.keyboard.press("Enter")


def columns(page: Page, mark: str) -> int:
    enter(page, f"echo {mark}:$(stty size):")
    expect(rows(page)).to_contain_text(re.compile(rf"{mark}:\d+ \d+:"))
    found = re.search(rf"{mark}:\d+ (\d+):", rows(page).inner_text())
    assert found is not None
    return int(found[1])


def test_a_shell_takes_keys_shows_output_follows_its_size_and_says_its_end(visitor: Visit, waiting: Experiment):
    page = opened(visitor, waiting)
    enter(page, "echo $((6*7))-$DET_TRIAL_ID")
    expect(rows(page)).to_contain_text(f"42-{waiting.trial_id}")
    wide = columns(page, "wide")
    page.set_viewport_size({"width": 700, "height": 700})
    page.wait_for_timeout(200)  # of the resize and the pause after it
    assert columns(page, "narrow") < wide
    page.set_viewport_size(WIDE)  # type: ignore[arg-type]
    enter(page, "exit 3")
    expect(shell(page).get_by_role("status")).to_have_text("The shell has ended with exit code 3.")
    page.get_by_role("button", name="Open again").click()
    connected(page)
    enter(page, "echo again-$((1+1))")
    expect(rows(page)).to_contain_text("again-2")


def test_colours_of_programs_are_shown_under_the_content_security_policy(visitor: Visit, waiting: Experiment):
    page = opened(visitor, waiting)
    enter(page, r"printf '\033[38;2;200;30;30m%s\033[0m %s\n' co''loured pl''ain")
    coloured = rows(page).locator("span", has_text=re.compile("^coloured$"))
    expect(coloured).to_have_css("color", "rgb(200, 30, 30)")
    assert page.evaluate("getComputedStyle(document.querySelector('.xterm-rows > div')).height") != "0px"


def test_a_pasted_text_arrives_whole_and_a_selected_one_is_copied(visitor: Visit, waiting: Experiment):
    visitor.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = opened(visitor, waiting)
    enter(page, "stty -echo; echo rea''dy; wc -c")
    expect(rows(page)).to_contain_text(re.compile("ready\\s*$"))
    page.evaluate("navigator.clipboard.writeText(('x'.repeat(1000) + '\\n').repeat(50))")
    page.keyboard.press("Control+Shift+v")
    page.keyboard.press("Control+d")
    expect(rows(page)).to_contain_text("50050")
    box = rows(page).get_by_text("50050").bounding_box()
    assert box is not None
    page.mouse.dblclick(box["x"] + 10, box["y"] + 5)
    page.keyboard.press("Control+Shift+c")
    assert page.evaluate("navigator.clipboard.readText()") == "50050"


@pytest.mark.parametrize("has_screen_reader", [True, pytest.param(False, marks=pytest.mark.long)])
def test_axe_finds_nothing_in_a_shell(visitor: Visit, waiting: Experiment, has_screen_reader: bool):
    page = opened(visitor, waiting)
    page.get_by_role("checkbox", name="Screen reader").set_checked(has_screen_reader)
    for size, theme in ((WIDE, "light"), (NARROW, "dark")):
        page.set_viewport_size(size)  # type: ignore[arg-type]
        page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
        expect(page.locator("html")).to_have_attribute("data-theme", theme)
        assert problems(page) == []


@pytest.mark.long  # other tests leave and enter shells
def test_a_shell_goes_on_while_other_tabs_are_shown_and_its_keyboard_can_be_left(visitor: Visit, waiting: Experiment):
    page = opened(visitor, waiting)
    enter(page, "word=kept")
    page.keyboard.press("Tab")
    expect(page.get_by_role("textbox", name=f"Shell of trial {waiting.trial_id}")).to_be_focused()
    page.keyboard.press("Control+c")
    page.keyboard.press("Control+Shift+Enter")
    expect(page.get_by_role("button", name="End…")).to_be_focused()
    page.get_by_role("link", name="Logs", exact=True).click()
    expect(shell(page)).to_have_count(0)
    page.get_by_role("link", name="Shell", exact=True).click()
    page.get_by_role("textbox", name=f"Shell of trial {waiting.trial_id}").focus()
    enter(page, "echo $word-$((1+1))")
    expect(rows(page)).to_contain_text("kept-2")


def test_a_shell_is_ended_after_a_question_only(visitor: Visit, waiting: Experiment):
    page = opened(visitor, waiting)
    page.get_by_role("button", name="End…").click()
    page.get_by_role("button", name="Cancel").click()
    connected(page)
    page.get_by_role("button", name="End…").click()
    page.get_by_role("dialog").get_by_role("button", name="End", exact=True).click()
    expect(shell(page).get_by_role("status")).to_have_text("You ended the shell.")


def test_a_shell_continues_after_a_restart_of_the_master_and_ends_with_its_trial(
    visitor: Visit, waiting: Experiment, own_cluster: LiveCluster
):
    page = opened(visitor, waiting)
    enter(page, "word=kept")
    field = page.get_by_role("textbox", name=f"Shell of trial {waiting.trial_id}")
    own_cluster.kill_master()
    expect(shell(page).get_by_role("status")).to_have_text("The connection was lost; connecting again…")
    field.focus()
    enter(page, "echo $word-$((1+1))")
    own_cluster.mend()
    connected(page)
    expect(rows(page)).to_contain_text("kept-2")
    waiting.do("kill")
    expect(shell(page).get_by_role("status")).to_have_text(re.compile("The trial has ended.$"))


@pytest.fixture
def others(browser: Browser, own_cluster: LiveCluster) -> Iterator[Callable[[], Visit]]:
    with visit(browser, own_cluster, "determined") as created:
        yield lambda: created


def test_who_does_not_own_a_trial_finds_no_shell(others: Callable[[], Visit], waiting: Experiment):
    page = others().page(f"/trials/{waiting.trial_id}/curves")
    expect(page.get_by_role("button", name="Fork")).to_be_visible()
    expect(page.get_by_role("link", name="Logs", exact=True)).to_be_visible()
    expect(page.get_by_role("link", name="Shell", exact=True)).to_have_count(0)
    page.goto(f"{page.url.rsplit('/', 1)[0]}/shell")
    page.get_by_role("button", name="Open a shell").click()
    expect(shell(page).get_by_role("status")).to_contain_text("only admin or an admin may enter it")


def test_tasks_of_all_kinds_are_listed_and_killed_after_a_question(
    visitor: Visit, waiting: Experiment, own_cluster: LiveCluster, others: Callable[[], Visit]
):
    config = {"entrypoint": ["sleep", "3600"], "description": "sleeps for long", "resources": {"slots": 0}}
    own_cluster.session.post("/api/v1/commands", {"config": config})
    page = visitor.page("/")
    expect(page.get_by_role("grid", name="Experiments")).to_be_visible()
    page.keyboard.press("g")
    page.keyboard.press("t")
    tasks = page.get_by_role("region", name="Tasks")
    command = tasks.get_by_role("row").filter(has_text="sleeps for long")
    expect(command.get_by_role("cell", name="command", exact=True)).to_be_visible()
    expect(command.get_by_role("cell", name="agent-1", exact=True)).to_be_visible()
    expect(tasks.get_by_role("link", name=f"trial {waiting.trial_id}")).to_be_visible()
    foreign = others().page("/cluster")
    expect(foreign.get_by_role("region", name="Tasks").get_by_text("sleeps for long")).to_be_visible()
    expect(foreign.get_by_role("button", name=re.compile("^Kill"))).to_have_count(0)
    command.get_by_role("button", name="Kill sleeps for long…").click()
    page.get_by_role("dialog").get_by_role("button", name="Kill", exact=True).click()
    expect(command).to_have_count(0)
    tasks.get_by_role("button", name=re.compile(f"^Kill trial {waiting.trial_id} of")).click()
    page.get_by_role("dialog").get_by_role("button", name="Kill", exact=True).click()
    expect(tasks.get_by_text("No task runs or waits.")).to_be_visible()
    waiting.ended("CANCELED")


def test_an_owner_who_is_no_administrator_opens_a_shell(
    others: Callable[[], Visit], own_cluster: LiveCluster, context: Path
):
    with log_in(own_cluster.url, own_cluster.data, "determined") as session:
        theirs = SimpleNamespace(session=session, cluster_id=own_cluster.cluster_id)
        trial = waiting_trial(theirs, context)  # type: ignore[arg-type]
        page = opened(others(), trial)
        enter(page, "echo own-$((1+1))")
        expect(rows(page)).to_contain_text("own-2")
        trial.do("kill")
        expect(shell(page).get_by_role("status")).to_have_text(re.compile("The trial has ended.$"))
