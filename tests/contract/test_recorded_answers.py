"""The answers of this master against those that a real Determined 0.38.1 gave to the same calls.

Differences are listed in ``recorded_differences.toml`` with their reason; no other may be there, and none may be
listed that is no longer there.
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

DOCS = Path(__file__).parents[2] / "docs"
sys.path.insert(0, str(DOCS))

from generate.markdown import cell  # noqa: E402  # the path is set above

TABLE = Path(__file__).parent / "recorded_differences.toml"
NOT_IMPLEMENTED = 501
MIN_ALIKE = 86
"""Calls that are answered alike, but for keys that are added or null. Raise it when there are more."""
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
    found: dict[str, str] = {}
    alike = with_more_keys = as_listed = 0
    not_offered: Counter[str] = Counter()
    for created, unlike in compared(session):
        if created.status == NOT_IMPLEMENTED != created.recorded["status"]:
            not_offered[created.noun] += 1
            continue
        if not unlike:
            alike += 1
        elif all(": absent → " in each for each in unlike):
            with_more_keys += 1
        else:
            as_listed += 1
        found |= dict.fromkeys(unlike, created.recorded["call"])
    print(f"{len(session.made)} calls: {alike} alike, {with_more_keys} alike but for added keys,", end=" ")
    print(f"{as_listed} differ as listed, {not_offered.total()} not offered")
    unlisted = {each: call for each, call in found.items() if not any(fnmatchcase(each, at) for at in patterns)}
    assert not_offered == _table()["not_offered"]
    assert not unlisted, "\n".join(f"{each} ({call})" for each, call in unlisted.items())
    gone = [at for at in patterns if not any(fnmatchcase(each, at) for each in found)]
    assert not gone, "no longer differences: " + "\n".join(gone)
    assert alike + with_more_keys >= MIN_ALIKE


def test_each_listed_difference_is_shown_to_who_comes_from_determined() -> None:
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
def test_a_difference_of_keys_kinds_and_enums_is_found(theirs: Any, ours: Any, expected: list[str]) -> None:
    assert [*differences("GET /a", shape_of(theirs), shape_of(ours))] == expected
