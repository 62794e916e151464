"""Search compared with the same query in plain Python over the same experiments."""

import asyncio
import json
import math
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.columns import update_columns
from tests.support.makers import NOON, add_experiment, add_trial, effective
from tests.support.new_database import new_database

from determined_master.db.engine import sqlite_url
from determined_master.db.session import Database
from determined_master.experiment_index.indexer import Indexer
from determined_master.experiment_index.list_query import Question, Search
from determined_master.notifications import Notifications
from determined_master.users import repository as users

pytestmark = pytest.mark.budget(10, "compares with a second implementation")

HOW_MANY = 60
WORDED = ["alpha", "Alpha two", "beta_%", "", "100%", "gamma/x"]
LABELS = ["a", "b", "A b"]
HP = [None, 0.0, 1.0, -2.5, 1e300, True, False, "adam", "SGD", "1", "true", "NaN"]
REPORTED = [0.5, 1.0, math.nan, math.inf, -math.inf, 2.0, "word", True]
TEXT_OPERATORS = ["=", "!=", "contains", "notContains", "isEmpty", "notEmpty"]
NUMBER_OPERATORS = ["=", "!=", "<", "<=", ">", ">=", "isEmpty", "notEmpty"]


@dataclass
class Plain:
    """The values of an experiment's columns in plain Python."""

    id: int = 0
    values: dict[str, Any] = field(default_factory=dict)
    labels: list[str] = field(default_factory=list)


@dataclass
class World:
    database: Database
    runner: asyncio.Runner
    plain: list[Plain]

    def ask(self, text: str, sort: str) -> list[int]:
        async def run_search() -> list[int]:
            async with self.database.read() as session:
                return await Search(session, NOON, Question(filter=text, sort=sort)).ids()

        return self.runner.run(run_search())


def reported(choice: random.Random) -> list[Any]:
    return [choice.choice(REPORTED) for _ in range(choice.randrange(4))]


async def fill(database: Database, choice: random.Random) -> list[Plain]:
    created = []
    async with database.write() as session:
        await users.add(session, username="someone", modified_at=NOON)
        await users.add_first_places(session, 1)
        for _ in range(HOW_MANY):
            description, x, y = choice.choice(WORDED), choice.choice(HP), choice.choice(HP)
            labels = [label for label in LABELS if choice.random() < 0.4]
            ended = NOON + timedelta(minutes=choice.randrange(5)) if choice.random() < 0.7 else None
            progress = choice.choice([0.0, 0.5, 1.0])
            row = await add_experiment(
                session, description=description, labels=labels, end_time=ended, progress=progress, config=effective()
            )
            values = reported(choice)
            await add_trial(
                session, row, hparams={"x": x, "y": {"z": y}}, reports=[("validation", {"m": v}) for v in values]
            )
            finite = [float(v) for v in values if not isinstance(v, str | bool) and math.isfinite(v)]
            columns = {
                "id": row.id,
                "description": description or None,
                "progress": progress,
                "endTime": ended,
                "hp.x": x,
                "hp.y.z": y,
                "validation.m.last": values[-1] if values else None,
                "validation.m.min": min(finite, default=None),
                "validation.m.mean": sum(finite) / len(finite) if finite else None,
            }
            created.append(Plain(row.id, columns, labels))
    await update_columns(Indexer(database))
    return created


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    path: Path = tmp_path_factory.mktemp("search") / "db"
    path.write_bytes(new_database())
    with asyncio.Runner() as runner:
        database = Database(sqlite_url(path), Notifications())
        try:
            yield World(database, runner, runner.run(fill(database, random.Random(7))))
        finally:
            runner.run(database.close())


def as_number(value: Any) -> float | None:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return None if math.isnan(number) else number


def figure(value: Any) -> float | None:
    """Returns the number of a stored value. Words are not numbers."""
    return None if isinstance(value, str) else as_number(value)


def word(value: Any) -> str | None:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    return value if isinstance(value, str) else None


def sent(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return (str(int(value)) if value.is_integer() else str(value)) if isinstance(value, float) else value


def holds(stored: Any, operator: str, operand: Any) -> bool:
    opposite = {"!=": "=", "notContains": "contains", "isEmpty": "notEmpty"}.get(operator)
    if opposite:
        return not holds(stored, opposite, operand)
    if operator == "notEmpty":
        return stored is not None
    if stored is None:
        return False
    if operator == "contains":
        text = word(stored)
        return text is not None and sent(operand).lower() in text.lower()
    mine, theirs = figure(stored), as_number(operand)
    if operator == "=":
        same_word = not isinstance(operand, float) and word(stored) == sent(operand)
        return same_word or (mine is not None and mine == theirs)
    if mine is None or theirs is None:
        return False
    return {"<": mine < theirs, "<=": mine <= theirs, ">": mine > theirs, ">=": mine >= theirs}[operator]


def is_so(plain: Plain, node: dict[str, Any]) -> bool:
    if node["kind"] == "group":
        answers = [is_so(plain, child) for child in node["children"]]
        return all(answers) if node["conjunction"] == "and" or not answers else any(answers)
    column, operator, operand = node["columnName"], node["operator"], node["value"]
    if column != "tags":
        return holds(plain.values[column], operator, operand)
    opposite = {"!=": "=", "notContains": "contains", "isEmpty": "notEmpty"}.get(operator)
    if opposite:
        return not is_so(plain, node | {"operator": opposite})
    return any(operator == "notEmpty" or holds(label, operator, operand) for label in plain.labels)


def before(value: Any, descending: bool) -> tuple[Any, ...]:
    """Returns a key that sorts numbers first, then words, then missing values."""
    number, text = figure(value), word(value)
    if number is None and text is None:
        return (2, 0, 0)
    if number is None:
        return (1, 0, [(-ord(c) if descending else ord(c)) for c in text or ""] + ([math.inf] if descending else []))
    return (0, -number if descending else number, 0)


def field_of(columns: list[str], operators: list[str], operands: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries(
        {
            "kind": st.just("field"),
            "columnName": st.sampled_from(columns),
            "operator": st.sampled_from(operators),
            "value": operands,
        }
    )


WORDS = st.sampled_from(["a", "A", "ALPHA", "alpha", "%", "_", "/", "adam", "sgd", "1", "true", "NaN", "word", "b", ""])
NUMBERS = st.sampled_from([0.0, 1.0, -2.5, 0.5, 2.0, 1e300, math.inf, "1", "-Infinity", True])
STORED = ["hp.x", "hp.y.z", "validation.m.last"]
FIELDS = (
    field_of(["description", "tags"], TEXT_OPERATORS, WORDS)
    | field_of(STORED, TEXT_OPERATORS, WORDS | NUMBERS)
    | field_of([*STORED, "validation.m.min", "validation.m.mean", "progress", "id"], NUMBER_OPERATORS, NUMBERS)
    | field_of(["endTime"], ["isEmpty", "notEmpty"], st.none())
)


def group_of(children: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries(
        {
            "kind": st.just("group"),
            "conjunction": st.sampled_from(["and", "or"]),
            "children": st.lists(children, max_size=3),
        }
    )


SORTABLE = [*STORED, "validation.m.min", "progress", "description", "id"]
ORDERS = st.lists(st.tuples(st.sampled_from(SORTABLE), st.booleans()), max_size=3, unique_by=lambda pair: pair[0])
quick = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@quick
@given(group=group_of(st.recursive(FIELDS, group_of, max_leaves=6)), order=ORDERS)
def test_a_search_finds_the_experiments_of_plain_python_in_the_same_order(
    world: World, group: dict[str, Any], order: list[tuple[str, bool]]
):
    text = json.dumps({"filterGroup": group})
    sort = ",".join(f"{column}={'desc' if descending else 'asc'}" for column, descending in order)
    expected = sorted((p for p in world.plain if is_so(p, group)), key=lambda p: -p.id)
    for column, descending in reversed(order):
        expected.sort(key=lambda p, c=column, d=descending: before(p.values[c], d))
    assert world.ask(text, sort) == [p.id for p in expected]


def test_the_search_tests_cover_every_kind_of_value(world: World):
    """Ensures that the search test covers every kind of value."""
    for column in STORED:
        kinds = {type(p.values[column]) for p in world.plain}
        assert {float, str, bool, type(None)} <= kinds
    lasts = [p.values["validation.m.last"] for p in world.plain]
    assert any(isinstance(v, float) and math.isnan(v) for v in lasts)
    assert math.inf in lasts
