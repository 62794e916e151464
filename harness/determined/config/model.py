"""Base of all parts of the configuration: frozen, closed, strict about types."""

from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic_core import PydanticCustomError


class Model(BaseModel):
    """A part of the configuration. Refuses unknown keys; ``3`` is a number and ``"3"`` is not."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    def to_json(self) -> dict[str, Any]:
        """Returns every field under its upstream name."""
        return self.model_dump(mode="json")


@dataclass(frozen=True)
class Takes:
    """Says which kinds of values a field takes whose annotation is ``Any`` because a validator decides."""

    kinds: tuple[type, ...]


def wrong(code: str, message: str, *at: str | int) -> PydanticCustomError:
    """Returns an error of our own; ``at`` is the path from the validated value to the wrong part."""
    kind: Any = code  # pydantic expects a literal; docs/reference/error-codes.md lists all of ours
    return PydanticCustomError(kind, "{message}", {"message": message, "at": at})


def _one_length(value: object) -> object:
    if isinstance(value, Length):
        return value
    if not isinstance(value, dict):
        raise wrong("E201", "expected a length such as {batches: 100}")
    given = [unit for unit in UNITS if unit in value]
    for key in value:
        if key not in UNITS:
            raise wrong("E203", f'unknown unit "{key}" of a length; valid units: {", ".join(UNITS)}', key)
    if len(given) > 1:
        raise wrong("E302", f"two lengths at once: {' and '.join(given)}; give one", given[1])
    if not given:
        raise wrong("E202", "a length needs one of batches, records, epochs")
    return value


def _one_length_or_int(value: object) -> object:
    if isinstance(value, int) and not isinstance(value, bool):
        if value < 0:
            raise wrong("E205", "a length must be 0 or more")
        return value
    return _one_length(value)


UNITS = ("batches", "records", "epochs")
Count = Annotated[int, Field(ge=0, le=2**63 - 1)]


class Length(Model):
    """A length of training: exactly one of batches, records, epochs."""

    batches: Count | None = None
    records: Count | None = None
    epochs: Count | None = None

    def to_json(self) -> dict[str, Any]:
        return {unit: getattr(self, unit) for unit in UNITS if getattr(self, unit) is not None}

    @classmethod
    def of(cls, **unit: int) -> "Length":
        """Returns a length, for example ``Length.of(batches=100)``."""
        return cls.model_validate(unit)


OneLength = Annotated[Length, BeforeValidator(_one_length)]


def _text_or_texts(value: object) -> object:
    if isinstance(value, str):
        if not value.strip():
            raise wrong("E206", "the entrypoint is empty")
        return value
    if not isinstance(value, list):
        raise wrong("E201", f"expected a text or a list of texts, got {kind_of(value)}")
    if not value:
        raise wrong("E206", "the entrypoint is empty")
    for index, each in enumerate(value):
        if not isinstance(each, str):
            raise wrong("E201", f"expected a text, got {kind_of(each)}; put it in quotes", index)
    return value


Entrypoint = Annotated[Any, BeforeValidator(_text_or_texts)]
SearchLength = Annotated[Any, Takes((int, Length)), BeforeValidator(lambda value: _checked_length(value))]


def _checked_length(value: object) -> object:
    value = _one_length_or_int(value)
    return Length.model_validate(value) if isinstance(value, dict) else value


def kind_of(value: object) -> str:
    """Describes the type of a YAML value in words.

    >>> kind_of({}), kind_of(True), kind_of("a")
    ('a mapping', 'a boolean (true)', 'a text ("a")')
    """
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return f"a boolean ({str(value).lower()})"
    if isinstance(value, int):
        return f"a whole number ({value})"
    if isinstance(value, float):
        return f"a number ({value:g})"
    if isinstance(value, str):
        return f'a text ("{value if len(value) <= 40 else value[:37] + "..."}")'
    return "a mapping" if isinstance(value, dict) else "a list"
