"""Answers of this master compared with those of a real Determined 0.38.1 to the same calls.

``recorded_differences.toml`` lists each difference with its reason. An unlisted difference fails, and so does an
outdated entry.
"""

import sys
import tomllib
from collections import Counter
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest
from tests.support.answer_shape import differences, shape_of
from tests.support.cluster import open_cluster
from tests.support.recorded_session import compared, repeat_session

pytestmark = pytest.mark.budget(15, "repeats a session of 341 calls")

DOCS = Path(__file__).parents[2] / "docs"
sys.path.insert(0, str(DOCS))

from generate.markdown import cell  # noqa: E402  # the path is set above

TABLE = Path(__file__).parent / "recorded_differences.toml"
NOT_IMPLEMENTED = 501
MIN_ALIKE = 94
"""Minimum of calls that are answered alike, except for keys that are added or null. Raise it when there are more."""
PAGE = DOCS / "how-to" / "coming-from-determined.md"


def listed() -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = _table()["difference"]
    return rows


def _table() -> dict[str, Any]:
    return tomllib.loads(TABLE.read_text(encoding="utf-8"))


async def test_answers_differ_from_the_recorded_ones_only_where_the_table_says_so(tmp_path: Path) -> None:
    patterns = [at for row in listed() for at in row["at"]]
    async with open_cluster(tmp_path) as cluster:
        session = await repeat_session(cluster)
    calls_by_difference: dict[str, str] = {}
    alike = with_more_keys = as_listed = 0
    not_offered: Counter[str] = Counter()
    for answered, unlike in compared(session):
        if answered.status == NOT_IMPLEMENTED != answered.recorded["status"]:
            not_offered[answered.noun] += 1
            continue
        if not unlike:
            alike += 1
        elif all(": absent → " in each for each in unlike):
            with_more_keys += 1
        else:
            as_listed += 1
        calls_by_difference |= dict.fromkeys(unlike, answered.recorded["call"])
    print(f"{len(session.answered)} calls: {alike} alike, {with_more_keys} alike but for added keys,", end=" ")
    print(f"{as_listed} differ as listed, {not_offered.total()} not offered")
    unlisted = {
        each: call for each, call in calls_by_difference.items() if not any(fnmatchcase(each, at) for at in patterns)
    }
    assert not_offered == _table()["not_offered"]
    assert not unlisted, "\n".join(f"{each} ({call})" for each, call in unlisted.items())
    outdated = [at for at in patterns if not any(fnmatchcase(each, at) for each in calls_by_difference)]
    assert not outdated, "no longer differences: " + "\n".join(outdated)
    assert alike + with_more_keys >= MIN_ALIKE


def test_the_page_for_users_of_determined_lists_each_difference() -> None:
    rows = [f"| {cell(row['what'])} | {cell(row['reason'])} |" for row in listed()]
    begin = "## Answers of the API"
    section = PAGE.read_text(encoding="utf-8").partition(begin)[2].partition("\n## ")[0]
    assert [line for line in section.splitlines() if line.startswith("| ")][1:] == rows


@pytest.mark.parametrize(
    ("theirs", "ours", "expected"),
    [
        ({"a": 1}, {"a": 2}, []),
        ({"a": 1}, {"a": 0}, ["GET /a.a: number → zero"]),
        ({"a": 1}, {}, ["GET /a.a: number → absent"]),
        ({}, {"a": None}, ["GET /a.a: absent → null"]),
        ({"a": "STATE_ERROR"}, {"a": "STATE_CANCELED"}, ["GET /a.a: STATE_ERROR → STATE_CANCELED"]),
        ({"trials": [{"id": 1}]}, {"trials": []}, ["trial: items → no items"]),
        ({"trials": [{"id": 1}, {"id": None}]}, {"trials": [{"id": None}]}, []),
        ({"a": {}}, {"a": []}, ["GET /a.a: object → list"]),
    ],
)
def test_a_difference_of_keys_kinds_or_enums_is_reported(theirs: Any, ours: Any, expected: list[str]) -> None:
    assert [*differences("GET /a", shape_of(theirs), shape_of(ours))] == expected
