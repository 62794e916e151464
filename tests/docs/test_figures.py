"""Figures that stand in several places are the same in all of them: measured ratios, bounds, limits, counts."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PERFORMANCE = "docs/operations/performance.md"
INDEX = "docs/architecture/experiment-index.md"
PAGE = "docs/architecture/page-interface.md"

SAME: dict[str, tuple[tuple[str, str], ...]] = {
    "create to the first step": (
        ("README.md", r"to the first step / `python train\.py` \| ([\d.]+)"),
        (PERFORMANCE, r"to the first step / `python train\.py` \| ([\d.]+)"),
    ),
    "pause to a free slot": (
        ("README.md", r"pause to free slot / one step, save and exit \| ([\d.]+)"),
        (PERFORMANCE, r"pause to free slot / one step, save and exit \| ([\d.]+)"),
    ),
    "first collective on two machines": (
        ("README.md", r"on two machines, torch_distributed / `torchrun` \| ([\d.]+)"),
        (PERFORMANCE, r"torch_distributed, one node and two / torchrun \| [\d.]+, ([\d.]+)"),
    ),
    "bound of the first step": (
        ("README.md", r"/ `python train\.py` \| [\d.]+ \| ≤ ([\d.]+)"),
        (PERFORMANCE, r"/ `python train\.py` \| [\d.]+ \| ≤ ([\d.]+)"),
        (PERFORMANCE, r"`python plain\.py` to that line \| ≤ ([\d.]+)"),
        ("bench/first_step.py", r'python train\.py", ([\d.]+)'),
    ),
    "bound of a pause": (
        ("README.md", r"one step, save and exit \| [\d.]+ \| ≤ ([\d.]+)"),
        (PERFORMANCE, r"one step, save and exit \| [\d.]+ \| ≤ ([\d.]+)"),
        (PERFORMANCE, r"the interpreter's exit \| ≤ ([\d.]+)"),
        ("bench/pause.py", r'step, save and exit", ([\d.]+)'),
    ),
    "bound of the first collective": (
        ("README.md", r"/ `torchrun` \| [\d.]+ \| ≤ ([\d.]+)"),
        (PERFORMANCE, r"/ torchrun \| .* \| ≤ ([\d.]+)"),
        (PERFORMANCE, r"by a real sshd \| ≤ ([\d.]+)"),
        ("bench/launchers.py", r'/ bare", ([\d.]+)'),
    ),
    "bound of reports a second": (
        (PERFORMANCE, r"the bare floor \| .* \| ≥ ([\d.]+)"),
        (PERFORMANCE, r"group-commit thread, nothing checked \| ≥ ([\d.]+)"),
        ("bench/ingest.py", r'over the floor", ([\d.]+)'),
    ),
    "bound of the master's memory": (
        (PERFORMANCE, r"one login \| (\d+) MiB"),
        (PERFORMANCE, r"the master's memory / (\d+) MiB"),
        ("bench/memory.py", r"LIMIT_MIB = (\d+)"),
    ),
    "bound of a no-op trial's CPU": (
        (PERFORMANCE, r"CPU of the master for a no-op trial \| .* \| ≤ (\d+) ms"),
        (PERFORMANCE, r"CPU of the master for each \| milliseconds \| ≤ (\d+) ms"),
        ("bench/noop_trials.py", r"MIN_RATE, MAX_CPU_MS = [\d.]+, ([\d.]+)"),
    ),
    "bound of the page's code": (
        (PERFORMANCE, r"JS and CSS on the wire / MLflow's \| .* \| ≤ ([\d.]+)"),
        (PERFORMANCE, r"MLflow's list of experiments \| ≤ ([\d.]+)"),
        ("bench/page_first_load.py", r'on the wire / MLflow", ([\d.]+)'),
    ),
    "bound of a change on the screen": (
        (PERFORMANCE, r"is on the screen: list; experiment \| .* \| ≤ (\d+) ms"),
        (PERFORMANCE, r"on the list and on the experiment \| milliseconds \| ≤ (\d+) ms"),
    ),
    "bound of a dead worker, in seconds": (
        (PERFORMANCE, r"peers gone and error readable \| .* \| ≤ ([\d.]+)"),
        (PERFORMANCE, r"seconds, 20 times \| ≤ ([\d.]+)"),
        ("bench/worker_death.py", r'error visible", (\d+)\.0'),
    ),
    "answers compared with Determined": (
        ("CHANGELOG.md", r"Determined 0\.38\.1 to (\d+) calls"),
        ("docs/how-to/coming-from-determined.md", r"A test makes (\d+) calls"),
    ),
    "megabytes of a context": (
        ("docs/how-to/data.md", r"it may hold (\d+) MB"),
        ("docs/how-to/coming-from-determined.md", r"the limit of (\d+) MB"),
    ),
    "seconds of a clock that is off": (
        ("CHANGELOG.md", r"clock differs by more than (\d+) s"),
        ("docs/architecture/agent-protocol.md", r"A difference of more than (\d+) s"),
        ("docs/how-to/web-page.md", r"clock is off by more than (\d+) s"),
        ("master/determined_master/agents/clock_skew.py", r"MAX_SKEW_SECONDS = (\d+)"),
    ),
    "slots of an agent": (
        ("CHANGELOG.md", r"agent has at most ([\d,]+) slots"),
        ("harness/determined/link/messages.py", r"MAX_SLOTS = (\d+)"),
    ),
    "names of one experiment": (
        (INDEX, r"([\d,]+) names of one experiment"),
        (PAGE, r"([\d,]+) names of one experiment"),
        ("master/determined_master/experiment_index/cell_values.py", r"MAX_NAMES = ([\d_]+)"),
    ),
    "characters of an indexed text": (
        (INDEX, r"texts of ([\d,]+)"),
        (PAGE, r"Texts are kept to ([\d,]+) characters"),
        ("master/determined_master/experiment_index/cell_values.py", r"MAX_TEXT_LENGTH = (\d+)"),
    ),
    "conditions of a filter": (
        (INDEX, r"a filter has (\d+) conditions"),
        (PAGE, r"At most (\d+) conditions"),
        ("master/determined_master/experiment_index/filters.py", r"MAX_FIELDS = (\d+)"),
    ),
    "groups of a list": (
        (INDEX, r"(\d+) groups"),
        (PAGE, r"most first, at most (\d+)"),
        ("master/determined_master/experiment_index/repository.py", r"MAX_GROUPS = (\d+)"),
    ),
    "points of a chunk": (
        (INDEX, r"up to ([\d,]+) neighbouring points"),
        ("master/determined_master/metric_series/downsampling.py", r"SIZE = (\d+)"),
    ),
    "reports that are packed": (
        (INDEX, r"It takes trials with (\d+)"),
        ("master/determined_master/metric_series/series_packer.py", r"MIN_POINTS = (\d+)"),
    ),
    "values of a lot": (
        (INDEX, r"in lots of ([\d,]+) values"),
        ("master/determined_master/experiment_index/large_experiments.py", r"VALUES_A_LOT = (\d+)"),
    ),
    "trials of a lot": (
        ("CHANGELOG.md", r"creates its trials in lots of (\d+)"),
        ("docs/decisions/0027-search-in-lots.md", r"at most (\d+) trials at one event"),
        ("master/determined_master/searcher/method.py", r"TRIALS_A_LOT = (\d+)"),
    ),
}
"""Figure → (file, pattern with one group) of each place. The groups of a figure are equal, but for separators."""


def found(file: str, pattern: str) -> str:
    """Returns the figure as digits. Fails unless the pattern matches, with one value."""
    values = {
        match.replace(",", "").replace("_", "") for match in re.findall(pattern, (ROOT / file).read_text("utf-8"))
    }
    assert len(values) == 1, f"{file} has {sorted(values) or 'nothing'} for {pattern}"
    return values.pop()


@pytest.mark.parametrize("figure", SAME)
def test_a_figure_is_the_same_wherever_it_stands(figure: str) -> None:
    values = {f"{file}: {pattern}": float(found(file, pattern)) for file, pattern in SAME[figure]}
    assert len(values) > 1
    assert len(set(values.values())) == 1, values


def test_every_figure_of_the_readme_is_one_that_is_compared() -> None:
    table = (ROOT / "README.md").read_text("utf-8").partition("| figure | ratio | bound |\n")[2].partition("\n\n")[0]
    rows = table.splitlines()[1:]
    patterns = [pattern for places in SAME.values() for file, pattern in places if file == "README.md"]
    assert len(rows) == 3
    assert all(sum(bool(re.search(pattern, row)) for pattern in patterns) == 2 for row in rows)
