"""Searches events for words, in pages.

The database preselects events whose columns or fixed words contain every word of the search. Of these, the sentence
decides: a payload also holds what the sentence does not say, such as the state before a change.
"""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
from sqlalchemy import ColumnElement, String, and_, cast, or_

from determined.errors import BadRequest
from determined.states import ExitReason
from determined_master.db.models import EventRow
from determined_master.db.session import ReadSession
from determined_master.db.statements.text_search import contains_lowered
from determined_master.events import repository
from determined_master.events.repository import Selection
from determined_master.events.sentences import MOVES, SLOT_STATUSES, TEMPLATES, sentence

MAX_WORDS = 20
MAX_EXAMINED = 5_000
"""Preselected events that one question examines; the next page continues after them."""
_PUNCTUATION = "()[],.:;"


class EventPage(NamedTuple):
    """``next`` is the value of ``before`` for the next page; None on the last page."""

    rows: list[EventRow]
    next: int | None


async def search(session: ReadSession, wanted: Selection, text: str, *, before: int | None, limit: int) -> EventPage:
    """Returns events whose sentence, actor, kind or target contain every word of ``text``, newest first.

    A page may hold fewer than ``limit`` events although there is a next one. Raises BadRequest for too many words.
    """
    words = text.lower().split()
    if len(words) > MAX_WORDS:
        raise BadRequest(f"a search has at most {MAX_WORDS} words, not {len(words)}")
    conditions = [_preselects(plain) for word in words if (plain := word.strip(_PUNCTUATION))]
    events: list[EventRow] = []
    examined = 0
    while examined < MAX_EXAMINED:
        rows = await repository.page(session, wanted, before=before, most=limit + 1, conditions=conditions)
        events += [row for row in rows if _contains(row, words)]
        if len(events) > limit:
            return EventPage(events[:limit], events[limit - 1].id)
        if len(rows) <= limit:
            return EventPage(events, None)
        examined += len(rows)
        before = rows[-1].id
    return EventPage(events, before)


def _contains(row: EventRow, words: Sequence[str]) -> bool:
    text = sentence(row.kind, row.actor, row.target_type, row.target_id, row.payload)
    said = f"{text} {row.actor} {row.kind} {row.target_type} {row.target_id}".lower()
    return all(word in said for word in words)


def _preselects(word: str) -> ColumnElement[bool]:
    """Returns a condition that holds for every event whose sentence contains ``word``, in lower case, and for some
    others."""
    payload = cast(EventRow.payload, String)
    columns = (EventRow.actor, EventRow.kind, EventRow.target_type, EventRow.target_id)
    conditions: list[ColumnElement[bool]] = [contains_lowered(column, word) for column in columns]
    conditions.append(contains_lowered(payload, _in_json(word)))
    conditions += [
        and_(EventRow.target_type == target_type, EventRow.kind == kind)
        for (target_type, kind), said in TEMPLATES.items()
        if word in said.lower()
    ]
    states = [("to", state) for state, said in MOVES.items() if word in said]
    reasons = [("reason", reason.value) for reason in ExitReason if word in reason.phrase]
    for key, value in [*states, *reasons]:
        # Not by the database's JSON functions: they raise an error for a damaged payload.
        conditions.append(payload.contains(_in_json({key: value}), autoescape=True))
    conditions += [
        and_(EventRow.kind.startswith("slot_"), EventRow.kind.endswith(f"_{status}"))
        for status, said in SLOT_STATUSES.items()
        if word in said
    ]
    if word in "slot of":
        conditions.append(EventRow.kind.startswith("slot_"))
    if word in "became":
        conditions.append(EventRow.kind == "moved")
    return or_(*conditions)


def _in_json(value: object) -> str:
    """Returns ``value`` as payloads spell it, without the quotes or braces."""
    return msgspec.json.encode(value).decode()[1:-1]
