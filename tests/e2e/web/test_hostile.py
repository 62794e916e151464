"""Texts that would act, in every place that accepts a text, are displayed only as text."""

import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect
from tests.e2e.web import runs
from tests.e2e.web.payloads import PAYLOADS, TERMINAL, file_name, user_name
from tests.e2e.web.visits import visit
from tests.e2e.web.watching import Watch
from tests.support.live_cluster import LiveCluster
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.budget(90, "looks at every page")]

CONTEXT = Path(__file__).parent / "hostile"
AGENT = "<svg onload=window.__ran=1>"
MANY = 2000
LONG = 10_000_000
ALL = (*PAYLOADS, *TERMINAL)
TAKE_ALL = (
    "name",
    "description",
    "label",
    "note",
    "line of output",
    "line of errors",
    "content of a file",
    "user",
    "display name",
    "failure",
    "changed line",
    "untracked file",
)
TAKE_NAMES = ("metric", "hyperparameter", "its value", "file", "label of the whole", "part of the description")
INPUTS = len(ALL) * len(TAKE_ALL) + len(PAYLOADS) * len(TAKE_NAMES) + len(("agent", "checkpoint", "the longest line"))


@dataclass
class Hostile:
    experiment: int
    trial: int
    """Id of the experiment with all payloads."""
    named_by_payload: list[int]
    """Experiments with one payload each as name, description, label and note."""
    with_code: int
    """Experiment whose state of the code has all payloads."""


@pytest.fixture(scope="module")
def hostile(cluster: LiveCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hostile]:
    folder = tmp_path_factory.mktemp("hostile") / "context"
    shutil.copytree(CONTEXT, folder)
    payloads = {"lines": ALL, "names": PAYLOADS, "many": MANY, "long": LONG // 2}
    (folder / "payloads.json").write_text(json.dumps(payloads))
    for payload in PAYLOADS:
        # a NUL would make the file binary
        (folder / file_name(payload)).write_text("\n".join(ALL).replace("\0", ""))
    everything = runs.quick(
        cluster,
        PAYLOADS[0],
        context=folder,
        entry="hostile.py",
        hyperparameters={payload: payload for payload in PAYLOADS},
        labels=list(PAYLOADS),
        description=" ".join(PAYLOADS),
        environment={"environment_variables": [f"HOSTILE={payload}" for payload in PAYLOADS[:3]]},
    )
    named_by_payload = []
    for payload in ALL:
        created = runs.quick(cluster, "to be named", activate=False)
        change = {"name": payload, "description": payload, "notes": payload, "labels": [payload]}
        cluster.session.request("PATCH", f"/api/v1/experiments/{created.id}", change)
        user = {"username": user_name(payload), "displayName": payload, "admin": False, "active": True}
        cluster.session.post("/api/v1/users", {"user": user, "password": "Long-enough-1", "isHashed": False})
        named_by_payload.append(created.id)
    code = {"branch": ALL[0], "remote": ALL[1], "diff": "\n".join(ALL), "untracked": list(ALL), "isCut": True}
    fork = {"config": "{name: code, entrypoint: x, searcher: {name: single, metric: m}}", "parentId": everything.id}
    with_code = cluster.session.post("/api/v1/experiments", {**fork, "code": code})["experiment"]["id"]
    cluster.start_agent(AGENT, slots=1)
    everything.ended("ERROR")
    line = {"taskId": everything.task_id, "log": "one line: " + "x" * LONG, "timestamp": "2026-01-01T00:00:00Z"}
    cluster.session.post("/api/v1/task/logs", {"logs": [line]})
    search = {"kind": "hyperparameter", "query": "__proto__"}
    wait_until(lambda: cluster.session.get("/detent/columns", search)["total"] > 0, what="the columns follow")
    yield Hostile(everything.id, everything.trial_id, named_by_payload, with_code)
    cluster.agents.pop(AGENT).end()


@pytest.fixture(scope="module")
def watched(browser: Browser, cluster: LiveCluster, hostile: Hostile) -> Iterator[Watch]:
    with visit(browser, cluster) as created:
        yield Watch(created)


def as_stored(payload: str) -> str:
    """The master stores the symbol of a NUL, which PostgreSQL refuses; a field of a page has one kind of line end."""
    return payload.replace("\0", "\u2400").replace("\r", "\n")


@pytest.mark.parametrize("every", [pytest.param(9, id="sample"), pytest.param(1, id="all", marks=pytest.mark.long)])
def test_no_page_runs_a_script_of_a_hostile_name(cluster: LiveCluster, hostile: Hostile, watched: Watch, every: int):
    page = watched.visit.page()
    whole, trial = f"/experiments/{hostile.experiment}", f"/trials/{hostile.trial}"
    columns = "&col=".join(
        ["id", "name", "description", "tags", "user", "hp.__proto__", "hp.constructor.prototype.polluted"]
    )
    places = {
        "list": f"/?col={columns}",
        "list by labels": f"/?col={columns}&group=tags",
        "list by users": f"/?col={columns}&group=user",
        "filter": "/?q=name%20~%20%22%3Cimg%20src%3Dx%20onerror%3Dwindow.__ran%3D1%3E%22",
        "wrong filter": "/?q=%3Cimg%20src%3Dx%20onerror%3Dwindow.__ran%3D1%3E%20%3D",
        **{
            f"experiment {tab}": f"{whole}/{tab}"
            for tab in ("overview", "trials", "metrics", "hyperparameters", "logs", "checkpoints", "config", "notes")
        },
        **{f"trial {tab}": f"{trial}/{tab}" for tab in ("curves", "hyperparameters", "attempts", "profile", "logs")},
        "compare": f"/compare?experiments={hostile.experiment},{hostile.named_by_payload[0]}",
        "cluster": "/cluster",
        "checkpoints": "/checkpoints",
        "events": "/events",
        "users": "/users",
        "settings": "/settings",
        "no such page": "/experiments/%3Cscript%3Ealert(1)%3C%2Fscript%3E",
        "saved address": "/compare?experiments=%3Cimg%20src=x%20onerror=alert(1)%3E",
    }
    for place, path in list(places.items())[::every]:
        page.goto(cluster.url + path)
        expect(page.locator("main").first).to_be_visible()
        expect(page.get_by_test_id("loading")).to_have_count(0)
        watched.look(page, place)
    for number, payload in list(zip(hostile.named_by_payload, ALL, strict=True))[::every]:
        page.goto(f"{cluster.url}/experiments/{number}/notes")
        expect(page.get_by_role("textbox", name="Notes")).to_have_value(as_stored(payload))
        watched.look(page, f"named {payload!r}")
    watched.found_nothing()


@pytest.mark.long  # the test above shows pages with these names
def test_no_dialog_runs_a_script_of_a_hostile_name(cluster: LiveCluster, hostile: Hostile, watched: Watch):
    page = watched.visit.page()
    page.get_by_role("gridcell").first.wait_for()
    for box in page.get_by_role("checkbox", name="Select experiment").all()[:3]:
        box.check()
    watched.look(page, "selected")
    page.keyboard.press("Control+k")
    for typed in ("script", "img", "svg", "javascript", "__proto__"):
        page.get_by_role("dialog").get_by_role("combobox").fill(typed)
        expect(page.get_by_role("dialog").get_by_role("option").filter(has_text=typed).first).to_be_visible()
        watched.look(page, f"palette {typed}")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Columns").click()
    page.get_by_role("searchbox", name="Find a column").fill("script")
    expect(page.get_by_role("dialog").get_by_text("hp.<script>").first).to_be_visible()
    watched.look(page, "columns")
    page.keyboard.press("Escape")
    page.goto(f"{cluster.url}/experiments/{hostile.experiment}/code")
    files = page.get_by_test_id("file").filter(has_not_text=re.compile("hostile.py|payloads.json"))
    expect(files).to_have_count(len(PAYLOADS))
    for number, file in enumerate(files.all()):
        file.click()
        expect(file).to_have_attribute("aria-current", "true")
        expect(page.get_by_test_id("source-line").nth(len(ALL) - 1)).to_be_visible()
        watched.look(page, f"file {number}")
    page.goto(f"{cluster.url}/experiments/{hostile.with_code}/code")
    page.get_by_role("region", name="Code state").get_by_text("Uncommitted changes").click()
    expect(page.get_by_role("region", name="Uncommitted changes").get_by_test_id("source-line").first).to_be_visible()
    watched.look(page, "code state")
    page.goto(f"{cluster.url}/experiments/{hostile.experiment}")
    page.get_by_role("button", name="Fork").click()
    expect(page.get_by_role("textbox", name="Configuration")).to_contain_text("Fork of <script>")
    watched.look(page, "fork")
    page.get_by_role("textbox", name="Configuration").fill(f"name: x\n{json.dumps(PAYLOADS[1])}: 1\n")
    expect(page.get_by_role("list", name="Problems")).to_contain_text("<img src=x")
    watched.look(page, "remarks")
    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("button", name="Edit labels").click()
    watched.look(page, "tags")
    page.keyboard.press("Escape")
    page.goto(f"{cluster.url}/trials/{hostile.trial}/logs")
    page.get_by_role("searchbox", name="Find in the log").fill('<img src=x onerror="')
    expect(page.get_by_test_id("log-line").locator("mark").first).to_be_visible()
    watched.look(page, "searched log")
    page.get_by_test_id("log-line").first.click()
    expect(page.get_by_role("dialog")).to_be_visible()
    watched.look(page, "line")
    page.goto(f"{cluster.url}/compare?experiments={hostile.experiment},{hostile.named_by_payload[0]}")
    for tab in ("Hyperparameters", "Configuration"):
        page.get_by_role("button", name=tab).click()
        expect(page.get_by_role("columnheader", name="Name")).to_be_visible()
        watched.look(page, f"compared {tab}")
    watched.found_nothing()
    print(f"hostile: {INPUTS} inputs on {len(watched.places)} places, none ran")


def test_a_log_line_of_ten_megabytes_is_shown(hostile: Hostile, watched: Watch):
    page = watched.visit.page(f"/trials/{hostile.trial}/logs")
    line = page.get_by_test_id("log-line").filter(has_text="one line: ")
    expect(line).to_contain_text("10,000,010 characters")
    assert len(line.text_content() or "") < 11_000
    line.click()
    expect(page.get_by_role("dialog")).to_contain_text(
        "The first 200,000 of 10,000,010 characters; the download has all."
    )
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_points_that_no_axis_can_show_are_counted_beside_the_curve(hostile: Hostile, watched: Watch):
    page = watched.visit.page(f"/trials/{hostile.trial}")
    card = page.get_by_role("region", name="odd", exact=True)
    expect(card).to_contain_text("3 points are not drawn as a line: 1 NaN, 1 +∞, 1 −∞.")
    expect(card.get_by_role("img")).to_have_attribute("aria-label", "odd: one line, 5 points to step 5")
    page.get_by_role("searchbox", name="Find a metric").fill("__proto__")
    expect(page.get_by_role("img", name="__proto__: one line, 3 points to step 3")).to_be_visible()


def test_two_thousand_metrics_are_searchable_and_few_are_drawn(hostile: Hostile, watched: Watch):
    page = watched.visit.page(f"/trials/{hostile.trial}")
    find = page.get_by_role("searchbox", name="Find a metric")
    expect(find).to_have_attribute("placeholder", f"Find one of {MANY + len(PAYLOADS) + 2} metrics")
    assert page.get_by_role("img").count() < 20
    find.fill("metric 1234")
    expect(page.get_by_role("img", name="metric 1234: one line, 1 point to step 4")).to_be_visible()


def test_an_agent_of_any_name_ships_its_output(cluster: LiveCluster, hostile: Hostile, watched: Watch):
    cluster.session.post("/api/v1/agents/agent-1/disable", {})
    try:
        created = runs.quick(cluster, "elsewhere")
        created.ended()
    finally:
        cluster.session.post("/api/v1/agents/agent-1/enable", {})
    page = watched.visit.page(f"/trials/{created.trial_id}/logs")
    expect(page.get_by_role("log")).to_contain_text("step 20: loss")
    page.get_by_role("link", name="Attempts").click()
    expect(page.get_by_role("cell", name=AGENT)).to_be_visible()
    watched.look(page, "attempt on the agent")
    watched.found_nothing()
