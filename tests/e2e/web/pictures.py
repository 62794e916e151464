"""Makes pictures of every page and tab from a real run: ``python -m tests.e2e.web.pictures FOLDER [PART OF A NAME…]``.

With ``--kept`` in place of names it makes those that are in git, and no others.
"""

import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

from playwright.sync_api import Page, expect, sync_playwright
from tests.e2e.web import runs
from tests.e2e.web.shrinking import shrink
from tests.e2e.web.visits import NARROW, WIDE, Visit, launch, visit
from tests.support.container_engine import TASK_IMAGE, has_image
from tests.support.database_rows import write_rows
from tests.support.kept_pictures import kept
from tests.support.live_cluster import LiveCluster, live_cluster, log_in

RATES = (0.02, 0.05, 0.1, 0.2)
WIDTHS = (32, 64, 128)
BROKEN = Path(__file__).parent / "broken"
STEADY = {"learning_rate": 0.02, "dropout": 0.1}
LONG = "digits-wide-resnet, cosine schedule with warm-up, label smoothing 0.1, batch 4096, seed 3"
LABELS = ("baseline", "digits-v2", "for the review", "cosine")
KEPT = "--kept"
STRETCH = 400
"""Factor that turns minutes into hours, so that the pictures show durations of real work."""
TIMES = {
    "experiments": ("start_time", "end_time"),
    "trials": ("start_time", "end_time"),
    "allocations": ("created_at", "placed_at", "ready_at", "preempt_requested_at", "preempt_acked_at", "ended_at"),
    "events": ("time",),
    "checkpoints": ("report_time",),
    "metrics": ("reported_at",),
    "task_logs": ("timestamp",),
    "slot_holds": ("held_at", "released_at"),
}


DOCUMENTATION: dict[str, tuple[str, Callable[[Page], None] | None]] = {
    "docs-index": ("/docs/index.html", None),
    "docs-tutorial": ("/docs/tutorial/index.html", None),
    "docs-how-to": ("/docs/how-to/several-slots.html", None),
    "docs-reference": ("/docs/reference/experiment-config.html", None),
    "docs-search": ("/docs/search.html?q=checkpoint", lambda page: search_results(page)),
}
"""Pages of the documentation site, which the master serves."""


@dataclass(frozen=True)
class Run:
    """Ids of the objects in the pictures."""

    first: int
    paused: int
    failed: int
    logged: int
    search: int
    adaptive: int
    waiting: int
    trials: dict[int, int]
    """The only or the first trial of each experiment."""


def make(cluster: LiveCluster) -> Run:
    """Creates experiments of two people: digits trained, paused and failed, a search, and a run that continues."""
    with log_in(cluster.url, cluster.data, "determined") as session:
        other = SimpleNamespace(session=session, cluster_id=cluster.cluster_id)
        first = runs.digits(cluster, batches=480, name=LONG, labels=list(LABELS))
        paused = runs.digits(
            other,
            batches=480,
            name="digits, less dropout",
            labels=["tuning"],
            hyperparameters=STEADY,
            profiling={"enabled": True},
        )
        paused.at_step(100)
        paused.pause()
        first.ended()
        paused.do("activate")
        failed = runs.digits(
            other,
            batches=480,
            name="digits, too much dropout",
            labels=["tuning"],
            max_restarts=1,
            hyperparameters={"dropout": 7},
        )
        # Its log names no folder of the machine that makes the pictures.
        logged = runs.quick(cluster, "a batch without labels", context=BROKEN, entry="labels.py", labels=["tuning"])
        search = runs.grid(cluster, "search for a rate", rates=RATES, widths=WIDTHS, labels=["search", "baseline"])
        rungs = runs.adaptive(cluster, "rates, compared at rungs", trials=12, labels=["search"])
        for experiment, state in (
            (search, "COMPLETED"),
            (rungs, "COMPLETED"),
            (failed, "ERROR"),
            (logged, "ERROR"),
            (paused, "COMPLETED"),
        ):
            experiment.ended(state, within=300)
        runs.forever(other, "long run", labels=["overnight"]).at_step(40)
        waiting = runs.forever(cluster, "waits for room", resources={"slots_per_trial": 2})
        note = "The rate decides; the width hardly matters.\n\nNext: the same with twice the steps."
        cluster.session.request(
            "PATCH", f"/api/v1/experiments/{search.id}", {"notes": note, "description": "every rate with every width"}
        )
        created = (first, paused, failed, logged, search, rungs, waiting)
        stretch(cluster)
        return Run(*(run.id for run in created), {run.id: run.trial_id for run in created})  # type: ignore[arg-type]


def stretch(cluster: LiveCluster) -> None:
    """Moves all past times away from now by the same factor."""
    now = time.time_ns() // 1000
    for table, columns in TIMES.items():
        assignments = ", ".join(f"{column} = ? - (? - {column}) * {STRETCH}" for column in columns)
        write_rows(cluster.data, f"UPDATE {table} SET {assignments}", [(now, now) * len(columns)])


def pages(run: Run) -> dict[str, tuple[str, Callable[[Page], None] | None]]:
    """Returns the address of each picture and the actions before it, by the name of the picture."""
    base, trial = f"/experiments/{run.search}", f"/trials/{run.trials[run.paused]}"
    compare = f"/compare?experiments={run.first},{run.paused}"
    places: dict[str, tuple[str, Callable[[Page], None] | None]] = {
        "list": ("/", None),
        "list-grouped": (
            "/?group=user&col=id&col=name&col=state&col=hp.learning_rate&col=hp.rate&col=searcherMetricsVal",
            None,
        ),
        "list-filtered": ("/?q=tag%20~%20tuning%20and%20hp.dropout%20%3C%201", None),
        "experiment-overview": (f"/experiments/{run.paused}/overview", without_folders),
        "experiment-logs": (f"/experiments/{run.logged}/logs", first_error),
        "experiment-code": (
            f"/experiments/{run.first}/code",
            lambda page: page.get_by_role("button", name="model_def.py").click(),
        ),
        "experiment-fork": (f"/experiments/{run.failed}", fork),
        "trial-logs": (f"/trials/{run.trials[run.logged]}/logs", None),
        "trial-attempts": (f"/trials/{run.trials[run.failed]}/attempts", None),
        "compare-curves": (compare, None),
        "compare-hyperparameters": (compare, lambda page: page.get_by_role("button", name="Hyperparameters").click()),
        "compare-configuration": (compare, lambda page: page.get_by_role("button", name="Configuration").click()),
        "palette": ("/", palette),
        "keys": (base, lambda page: page.keyboard.press("?")),
    }
    places |= {
        f"experiment-{tab}": (f"{base}/{tab}", None)
        for tab in ("trials", "metrics", "hyperparameters", "checkpoints", "config", "notes")
    }
    places["experiment-rungs"] = (f"/experiments/{run.adaptive}/hyperparameters", None)
    places["experiment-why"] = (f"/experiments/{run.waiting}/overview", without_folders)
    places |= {f"trial-{tab}": (f"{trial}/{tab}", None) for tab in ("curves", "hyperparameters", "profile")}
    places["cluster"] = ("/cluster", quarter_of_a_day)
    places |= {place: (f"/{place}", None) for place in ("checkpoints", "events", "users", "settings")}
    return places | DOCUMENTATION


def search_results(page: Page) -> None:
    expect(page.locator("#search-results p.search-summary")).to_contain_text("matching the search query")


def quarter_of_a_day(page: Page) -> None:
    for button in page.get_by_role("button", name="6 h").all():
        button.click()


def without_folders(page: Page) -> None:
    """Hides folders of this machine in the log lines of the overview."""
    page.evaluate(
        """() => {
          const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
          while (texts.nextNode()) texts.currentNode.data = texts.currentNode.data.replace(/(\\/[\\w.-]+){3,}/g, "/data/…");
        }"""
    )


def first_error(page: Page) -> None:
    page.get_by_role("button", name="First error").click()
    page.locator("[data-testid=log-line][aria-current]").wait_for()


def fork(page: Page) -> None:
    page.get_by_role("button", name="Fork").click()
    editor = page.get_by_role("textbox", name="Configuration")
    expect(editor).to_contain_text("Fork of")
    text = str(page.evaluate("document.querySelector('.cm-content').innerText"))
    editor.fill(re.sub(r"max_restarts: \d+", "max_restarts: many", text))
    page.locator(".cm-lintRange-error").wait_for()


def palette(page: Page) -> None:
    page.keyboard.press("Control+k")
    page.keyboard.type("dig")
    page.get_by_role("option", name=re.compile("digits")).first.wait_for()


def settled(page: Page) -> None:
    page.locator("main, [role=main], [role=dialog]").first.wait_for()
    expect(page.get_by_test_id("loading")).to_have_count(0)
    expect(page.locator("[aria-busy=true]")).to_have_count(0)
    page.wait_for_load_state("load")
    expect(page.get_by_test_id("toast")).to_have_count(0)


def file_name(name: str, theme: str, size: dict[str, int]) -> str:
    return f"{name}-{theme}-{size['width']}.png"


def draw(
    folder: Path,
    person: Visit,
    stranger: Visit,
    places: dict[str, tuple[str, Callable[[Page], None] | None]],
    selected: Sequence[str],
) -> int:
    """Makes the pictures of all widths and themes from one visit per page. Returns their number."""
    folder.mkdir(parents=True, exist_ok=True)
    wanted = kept() if KEPT in selected else None
    count = 0
    # A context of its own, so that the policy of no page applies to it.
    blank = stranger.context.new_page()
    for name, (path, begin) in places.items():
        variants = [
            (size, theme)
            for size in (WIDE, NARROW)
            for theme in ("light", "dark")
            if wanted is None or file_name(name, theme, size) in wanted
        ]
        if not variants or (wanted is None and selected and not any(part in name for part in selected)):
            continue
        page = (stranger if name == "sign-in" else person).page(path)
        settled(page)
        if begin:
            begin(page)
        for size, theme in variants:
            page.set_viewport_size(size)  # type: ignore[arg-type]
            page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
            # The theme of the documentation follows the system by style sheets alone.
            page.locator(f"[data-theme={theme}], [data-theme=auto]").wait_for()
            settled(page)
            # Curves are drawn on canvas in the frame after the change.
            page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
            path_of = folder / file_name(name, theme, size)
            page.screenshot(path=path_of, animations="disabled", caret="hide")
            shrink(path_of, blank)
            count += 1
        page.close()
    return count


def draw_container(folder: Path, selected: Sequence[str]) -> int:
    """Makes the picture of an attempt in a container, unless the engine or its default image is missing."""
    if shutil.which("docker") is None or not has_image(TASK_IMAGE):
        return 0
    with (
        tempfile.TemporaryDirectory(prefix="pictures-") as name,
        live_cluster(Path(name) / "data", slots=0, cluster_name="lab") as cluster,
    ):
        cluster.start_agent("agent-1", slots=1, arguments=("--container-runtime", "docker"))
        trial = runs.quick(cluster, "in a container", environment={"image": TASK_IMAGE})
        trial.ended(within=120)
        places = {"trial-image": (f"/trials/{trial.trial_id}/attempts", None)}
        with sync_playwright() as playwright:
            browser = launch(playwright)
            with visit(browser, cluster) as person:
                count = draw(folder, person, Visit(browser, cluster.url), places, selected)
            browser.close()
    return count


def main(folder: Path, selected: Sequence[str]) -> int:
    with (
        tempfile.TemporaryDirectory(prefix="pictures-") as name,
        live_cluster(Path(name), slots=2, cluster_name="lab") as cluster,
    ):
        run = make(cluster)
        with sync_playwright() as playwright:
            browser = launch(playwright)
            with visit(browser, cluster) as person:
                places = {**pages(run), "sign-in": ("/sign-in", None)}
                count = draw(folder, person, Visit(browser, cluster.url), places, selected)
            browser.close()
    count += draw_container(folder, selected)
    sizes = sorted((path.stat().st_size, path.name) for path in folder.glob("*.png"))
    print(
        f"{count} pictures in {folder}, {sum(size for size, _ in sizes) / 1e6:.1f} MB; the largest: {sizes[-1][1]}, {sizes[-1][0] // 1000} kB"
    )
    return 0


if __name__ == "__main__":
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    raise SystemExit(main(Path(sys.argv[1]), sys.argv[2:]))
