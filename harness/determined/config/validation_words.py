"""Says in words what pydantic has found: its own sentences are for programmers."""

from typing import Any

from pydantic_core import ErrorDetails

_EXPECTED = {
    "string": "a text",
    "int": "a whole number",
    "float": "a number",
    "decimal": "a number",
    "bool": "true or false",
    "list": "a list",
    "tuple": "a list",
    "set": "a list",
    "dict": "a mapping",
    "mapping": "a mapping",
    "model": "a mapping",
    "dataclass": "a mapping",
    "datetime": "a time such as 2026-01-31T12:00:00Z",
    "date": "a date such as 2026-01-31",
    "path": "a path",
    "url": "an address such as https://host:8080",
    "ip_any_address": "an IP address",
    "ip_any_network": "a network such as 10.0.0.0/8",
    "uuid": "a UUID",
    "bytes": "a text",
}
_BOUNDS = (("ge", "at least"), ("gt", "more than"), ("le", "at most"), ("lt", "less than"))
_LENGTHS = (("min_length", "at least"), ("max_length", "at most"))
_PLAIN = {
    "missing": "is missing",
    "extra_forbidden": "is unknown",
    "finite_number": "must be a finite number",
    "json_invalid": "is not JSON",
    "string_unicode": "must be a text without broken characters",
    "string_pattern_mismatch": "has characters that are not allowed here",
}


def in_words(details: ErrorDetails) -> str:
    """Returns what is wrong with a value, without its name and without the value, which may be secret.

    >>> in_words({"type": "int_parsing", "loc": ("limit",), "msg": "Input should …", "input": "x"})
    'expected a whole number, got a text'
    """
    kind = details["type"]
    context: dict[str, Any] = details.get("ctx", {})
    if kind[:1] == "E" and kind[1:].isdigit():
        return str(context["message"])
    if kind in ("value_error", "assertion_error"):
        return str(context["error"])  # a sentence of a check of ours
    if kind in _PLAIN:
        return _PLAIN[kind]
    if kind in ("literal_error", "enum"):
        return "expected " + str(context["expected"]).replace("'", '"')
    if kind == "union_tag_invalid":
        return f"expected one of {str(context['expected_tags']).replace(chr(39), chr(34))}"
    for key, words in _BOUNDS:
        if key in context:
            return f"must be {words} {context[key]}"
    for key, words in _LENGTHS:
        if key in context:
            unit = "characters" if kind.startswith(("string", "bytes")) else "entries"
            return f"must have {words} {context[key]} {unit}"
    for prefix in _EXPECTED:
        if kind.startswith(f"{prefix}_"):
            return f"expected {_EXPECTED[prefix]}, got {_type_of(details['input'])}"
    return f"{_type_of(details['input'])} is not accepted here ({kind.replace('_', ' ')})"


def _type_of(value: object) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, int):
        return "a whole number"
    if isinstance(value, float):
        return "a number"
    if isinstance(value, str | bytes):
        return "a text"
    return "a mapping" if isinstance(value, dict) else "a list"
