"""Completes ids of which the user gave the beginning."""

import re
from typing import Literal

from determined.client.session import Session
from determined.errors import BadRequest, NotFound

_UUID = re.compile(r"(.*\.)?[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z")


def resolve(session: Session, kind: Literal["checkpoint", "job", "task"], text: str) -> str:
    """Returns the only id that begins with ``text``. A whole id is returned without asking.

    Args:
        kind: what the id is of.
        text: the id or its beginning.

    Raises:
        NotFound: no id begins so.
        BadRequest: several do; the message names them.

    >>> resolve(session, "checkpoint", "3f2b")  # doctest: +SKIP
    '3f2b6a1e-0d58-4a62-9a0c-6f5f3f9d1a11'
    """
    if _UUID.match(text):
        return text
    matching = [str(each) for each in session.get(f"/detent/ids/{kind}s", {"prefix": text})["ids"]] if text else []
    if not matching:
        raise NotFound(f"{kind} '{text}' not found")
    if len(matching) > 1:
        raise BadRequest(f"several {kind}s begin with {text}: {', '.join(matching)}; give more characters")
    return matching[0]
