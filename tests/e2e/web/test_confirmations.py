"""Actions that cannot be undone ask first and name the loss. Other actions run at the first click."""

import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Locator, Page, expect
from tests.e2e.web import runs
from tests.e2e.web.visits import Visit
from tests.support.live_cluster import LiveCluster
from tests.support.live_trials import Experiment

pytestmark = [pytest.mark.e2e]

Come = Callable[..., Visit]


@pytest.fixture(scope="module")
def held(cluster: LiveCluster) -> Iterator[Experiment]:
    created = runs.forever(cluster, "to be confirmed")
    created.at_step(3)
    yield created
    created.do("kill")


def _button(page: Page | Locator, name: str) -> Locator:
    return page.get_by_role("button", name=name, exact=True)


@pytest.mark.long  # the page's own tests ask and act
def test_disable_names_the_trials_and_drain_acts_at_the_first_click(visitor: Come, held: Experiment):
    page = visitor().page("/cluster")
    agent = page.get_by_role("region", name="Agent agent-1", exact=True)
    _button(agent, "Disable…").click()
    dialog = page.get_by_role("dialog", name=re.compile("^Disable agent "))
    expect(dialog.get_by_role("list", name="Trials")).to_contain_text(
        f"Trial {held.trial_id} of experiment {held.id}, to be confirmed"
    )
    expect(dialog).to_contain_text("killed at once, without a checkpoint")
    _button(dialog, "Cancel").click()
    expect(_button(agent, "Drain")).to_be_visible()
    _button(agent, "Drain").click()
    expect(agent).to_contain_text("draining")
    expect(page.get_by_role("dialog")).to_have_count(0)
    _button(agent, "Enable").click()
    expect(_button(agent, "Drain")).to_be_visible()
    held.running()


def test_the_kill_dialog_names_the_lost_work_and_offers_stop(visitor: Come, held: Experiment):
    page = visitor().page(f"/experiments/{held.id}/overview")
    _button(page, "Kill").click()
    dialog = page.get_by_role("dialog", name=f"Kill experiment {held.id}?")
    expect(dialog.get_by_role("list", name="Lost work")).to_contain_text(re.compile(rf"Trial {held.trial_id}: .*step"))
    expect(dialog).to_contain_text("Stop saves a checkpoint first, then ends it.")
    expect(_button(dialog, "Stop instead")).to_be_visible()
    _button(dialog, "Cancel").click()
    expect(page.locator("header").get_by_test_id("state")).to_have_text(re.compile("running"))


def test_typed_notes_survive_a_change_of_tab(visitor: Come, held: Experiment):
    page = visitor().page(f"/experiments/{held.id}/notes")
    notes = page.get_by_role("textbox", name="Notes")
    notes.fill("a rate of 0.1 is too high")
    page.get_by_role("tab", name="Overview").or_(page.get_by_role("link", name="Overview", exact=True)).first.click()
    expect(page.get_by_role("heading", name="Timeline")).to_be_visible()
    page.get_by_role("tab", name="Notes").or_(page.get_by_role("link", name="Notes", exact=True)).first.click()
    expect(notes).to_have_value("a rate of 0.1 is too high")
    expect(page.get_by_text("not saved yet")).to_be_visible()


def test_deleting_asks_for_the_same_words_in_the_list_and_on_the_page(cluster: LiveCluster, visitor: Come):
    created = runs.quick(cluster, "to be deleted", activate=False)
    created.do("kill")
    created.ended("CANCELED")
    page = visitor().page(f"/experiments/{created.id}/overview")

    def dialog_of(more: str) -> Locator:
        _button(page, more).click()
        page.get_by_role("menuitem", name="Delete…").click()
        dialog = page.get_by_role("dialog", name="Delete 1 experiment?")
        expect(dialog.get_by_role("list", name="Experiments")).to_contain_text("to be deleted")
        expect(dialog.get_by_text("delete 1 experiment", exact=True)).to_be_visible()
        return dialog

    _button(dialog_of("More for this experiment"), "Cancel").click()
    page.goto(f"{cluster.url}/?q=to be deleted")
    page.get_by_role("checkbox", name=f"Select experiment {created.id}").check()
    dialog = dialog_of("More for the selected")
    delete = _button(dialog, "Delete")
    expect(delete).to_have_attribute("aria-disabled", "true")
    dialog.get_by_role("textbox").fill("delete 1 experiment")
    delete.click()
    expect(page.get_by_role("checkbox", name=f"Select experiment {created.id}")).to_have_count(0)
