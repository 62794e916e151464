"""A long log: fills a new database with one trial of a million lines, and measures the cost of reading it.

``python -m bench.long_log FOLDER [LINES]`` fills FOLDER/master.sqlite and requests pages of it.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx

from bench import datasets
from bench.datasets import START

ERROR = "RuntimeError: the one line that is looked for"


def fill(folder: Path, lines: int = 1_000_000, *, error_at: int = 654_321, ranks: int = 8) -> None:
    """Stores one ended trial. Its line number ``error_at`` (from 0) is ERROR, all others report steps."""
    with datasets.database(folder) as connection:
        experiment = datasets.experiment(connection, "long log", "loss")
        datasets.trial(connection, experiment, 1)
        connection.executemany(
            "INSERT INTO task_logs (task_id, allocation_id, agent_id, container_id, rank_id, timestamp, level, stdtype,"
            " source, log, is_error) VALUES (?, ?, 'one', '0123456789abcdef', ?, ?, ?, 'stdout', 'task', ?, ?)",
            _lines(f"{experiment}.1", lines, error_at, ranks),
        )


def _lines(task: str, count: int, error_at: int, ranks: int) -> Iterator[tuple[str, str, int, int, str, str, bool]]:
    for number in range(count):
        is_error = number == error_at
        text = ERROR if is_error else f"step {number}: loss {1 / (1 + number):.6f}, {number % 977} samples a second"
        yield task, f"{task}.1", number % ranks, START + number * 1000, "ERROR" if is_error else "INFO", text, is_error


async def measure(folder: Path, *, rounds: int = 5) -> None:
    """Prints the seconds of each request, through the whole app."""
    async with datasets.app_over(folder) as (master, client):
        page = "/detent/trials/1/logs"
        extent = (await client.get(f"{page}/extent")).json()
        middle = (extent["firstId"] + extent["lastId"]) // 2
        requests: dict[str, tuple[str, dict[str, Any]]] = {
            "newest page": (page, {}),
            "newest page of 2000": (page, {"limit": 2000}),
            "page before the middle": (page, {"before": middle}),
            "page after the middle": (page, {"after": middle}),
            "page around the middle": (page, {"around": middle}),
            "first error": (f"{page}/first-error", {}),
            "extent, counted before": (f"{page}/extent", {}),
            "errors among 50,000": (page, {"levels": "ERROR"}),
            "search, in vain": (page, {"search": "nowhere to be found"}),
            "search, at once": (page, {"search": "LOSS"}),
            "expression, in vain": (page, {"search": "nowhere .* found$", "regex": True}),
        }
        for name, (path, query) in requests.items():
            await datasets.measured(name, lambda p=path, q=query: client.get(p, params=q), rounds)  # type: ignore[misc]

        async def first_extent() -> httpx.Response:
            master.log_counts.__init__()
            return await client.get(f"{page}/extent")

        await datasets.measured("extent, first", first_extent, rounds)


if __name__ == "__main__":
    datasets.main(sys.argv[1:], fill, measure)
