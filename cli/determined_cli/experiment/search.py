"""Filters and sorts a list of experiments on the master, so that only the rows that are printed travel."""

import json
from argparse import Namespace
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from determined.client.session import Session
from determined.errors import BadRequest
from determined_cli.output.render import Column
from determined_cli.output.row_selection import parse_condition, parse_sort

MASTER_COLUMNS = {
    "id": "id",
    "username": "user",
    "name": "name",
    "forked_from": "forkedFrom",
    "state": "state",
    "progress": "progress",
    "start_time": "startTime",
    "end_time": "endTime",
    "resource_pool": "resourcePool",
    "labels": "tags",
    "archived": "archived",
}
"""Key of a column of ``det experiment list`` → its name in the master's search."""
TEXTS = frozenset({"username", "name", "state", "resource_pool", "labels"})
PAGE = 200


class SearchPage(NamedTuple):
    """One part of a list; ``total`` counts all experiments that match."""

    experiments: list[dict[str, Any]]
    total: int


def search(session: Session, question: dict[str, Any], *, offset: int, limit: int | None) -> SearchPage:
    """Returns the experiments that match a question, without the first ``offset``, ``limit`` at most."""
    total = 0
    found: list[dict[str, Any]] = []
    for answer in _pages(session, question, offset, limit):
        found += [each["experiment"] for each in answer["experiments"]]
        total = int(answer["pagination"]["total"])
    return SearchPage(found, total)


def question_of(
    args: Namespace, columns: Sequence[Column], *, owner: str | None, archived: bool | None = None
) -> dict[str, Any]:
    """Returns ``--filter`` and ``--sort`` as the master's filter and order. Raises BadRequest for a wrong flag.

    ``owner`` restricts the list to experiments of this user. ``archived``: True finds archived ones too; None only if
    no owner is given.
    """
    conditions = [_field(text, columns) for text in args.filter]
    shows_archived = owner is None if archived is None else archived
    if owner is not None:
        conditions.append(_condition("user", "=", owner))
    if not shows_archived:
        conditions.append(_condition("archived", "=", False))
    group = {"kind": "group", "conjunction": "and", "children": conditions}
    question = {"filter": json.dumps({"filterGroup": group, "showArchived": shows_archived})}
    sort = parse_sort(args.sort, columns)
    if sort is not None:
        question["sort"] = f"{MASTER_COLUMNS[sort.key]}={'desc' if sort.is_descending else 'asc'}"
    return question


def _pages(session: Session, body: dict[str, Any], offset: int, limit: int | None) -> Iterator[dict[str, Any]]:
    left = limit
    while left is None or left > 0:
        size = PAGE if left is None else min(PAGE, left)
        answer = session.post("/api/v1/experiments-search", {**body, "offset": offset, "limit": size})
        yield answer
        number = len(answer["experiments"])
        offset += number
        left = None if left is None else left - number
        # A page without items ends the loop too, so that a wrong total cannot make it endless.
        if not number or offset >= int(answer["pagination"]["total"]):
            return


def _field(text: str, columns: Sequence[Column]) -> dict[str, Any]:
    """Returns the master's form of a condition such as ``progress>50%``."""
    key, sign, value = parse_condition(text, columns)
    column = MASTER_COLUMNS[key]
    if value == "" and sign in ("=", "!="):
        return _condition(column, "isEmpty" if sign == "=" else "notEmpty", None)
    if sign == "~":
        if key not in TEXTS:
            raise BadRequest(f'--filter "{text}": ~ (contains) needs a column of text: {", ".join(sorted(TEXTS))}')
        return _condition(column, "contains", value)
    return _condition(column, sign, _fraction(value) if key == "progress" else value)


def _condition(column: str, operator: str, value: object) -> dict[str, Any]:
    return {"kind": "field", "columnName": column, "operator": operator, "value": value}


def _fraction(text: str) -> str | float:
    """Returns a percentage as a number between 0 and 1; other texts as they are."""
    if not text.endswith("%"):
        return text
    try:
        return float(text.removesuffix("%")) / 100
    except ValueError:
        return text
