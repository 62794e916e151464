"""``det preview-search``: it prints a plan without a request to a master."""

import json
from pathlib import Path

import pytest

from .conftest import Det, FakeMaster

BASE = "entrypoint: a.py\nhyperparameters: {lr: {type: log, minval: -4, maxval: -1}}\n"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "search.yaml"
    path.write_text(
        BASE + "searcher: {name: adaptive_asha, metric: m, max_trials: 16, time_metric: batches, max_time: 64}"
    )
    return path


def test_preview_search_prints_brackets_rungs_and_trials_by_length(det: Det, fake: FakeMaster, config: Path):
    done = det("preview-search", str(config))
    lines = [[cell.strip() for cell in line.split("|")] for line in done.out.splitlines()]
    assert ["1", "12", "8", "4, 16, 64 batches"] in lines
    assert ["2", "4", "4", "16, 64 batches"] in lines
    assert [line for line in lines if len(line) == 2][1:] == [
        ["9", "4 batches"],
        ["5", "16 batches"],
        ["2", "64 batches"],
    ]
    assert "about 1 trial of 4 trains on" in done.err
    assert fake.requests == []


def test_preview_search_as_json_uses_overrides(det: Det, config: Path):
    done = det("preview-search", str(config), "--config", "searcher.max_trials=32", "--json")
    plan = json.loads(done.out)
    assert (plan["searcher"], plan["unit"]) == ("adaptive_asha", "batches")
    assert plan["brackets"][0] == {"bracket": 1, "trials": 24, "concurrent": 8, "rungs": [4, 16, 64]}
    assert sum(length["trials"] for length in plan["lengths"]) == 32


def test_preview_search_of_a_random_and_of_an_invalid_search(det: Det, tmp_path: Path):
    path = tmp_path / "random.yaml"
    path.write_text(BASE + "searcher: {name: random, metric: m, max_trials: 7}")
    assert "7 | as long as their code does" in det("preview-search", str(path)).out
    path.write_text(BASE + "searcher: {name: adaptive_asha, metric: m, max_trials: 7}")
    done = det("preview-search", str(path))
    assert done.code == 4
    assert "error[E311]" in done.err


def test_preview_search_of_a_search_in_a_task_names_only_its_limit(det: Det, tmp_path: Path):
    path = tmp_path / "own.yaml"
    path.write_text(BASE + 'searcher: {name: search_method, method: "a:B", metric: m, max_trials: 7}')
    done = det("preview-search", str(path))
    assert done.code == 0
    assert "search_method decides in a task which trials run, so only the limit is known: at most 7 trials" in done.err
