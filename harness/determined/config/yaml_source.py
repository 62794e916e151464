"""Reads YAML text as plain data with the line and column of each key and value."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import yaml

from determined import yaml_places
from determined.config import yaml_scalars
from determined.config.diagnostics import Path
from determined.config.yaml_nodes import MAX_DEPTH, MappingNode, Node, Problem, ScalarNode, SequenceNode, compose
from determined.config.yaml_syntax import reason

_TAB_INDENT = re.compile(" *\t")
MAX_BYTES = 1 << 20  # the largest configurations seen are a few kilobytes
MAX_VALUES = 100_000  # maximum number of nodes after unfolding aliases; stops "billion laughs"

CODE_BINARY = "E101"
CODE_HUGE = "E102"
CODE_SYNTAX = "E103"
CODE_DUPLICATE = "E104"
CODE_NOT_MAPPING = "E105"
CODE_UNSUPPORTED = "E106"

_EXAMPLE = 'a configuration begins with lines like "name: my-experiment" and "entrypoint: python3 train.py"'


@dataclass(frozen=True)
class Place:
    """The positions of a key and its value, counted from 1."""

    line: int
    column: int
    value_line: int
    value_column: int


@dataclass
class Source:
    """A parsed document: ``data`` is a mapping, empty if the text cannot be used."""

    lines: list[str]
    data: dict[str, Any] = field(default_factory=dict)
    places: dict[Path, Place] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    @property
    def is_readable(self) -> bool:
        """Returns True if ``data`` has the content of the text; duplicate keys are allowed."""
        return all(problem.code == CODE_DUPLICATE for problem in self.problems)


def read(text: str) -> Source:
    """Parses a document. Never raises: ``problems`` lists all errors."""
    source = Source(lines=text[:MAX_BYTES].split("\n"))
    refuse = _refuser(source)
    if len(text) > MAX_BYTES or len(text.encode("utf-8", "replace")) > MAX_BYTES:
        refuse(CODE_HUGE, 1, 1, f"the configuration is larger than {MAX_BYTES:,} bytes", "is this the right file?")
        return source
    stranger = _first_control_character(text)
    if stranger is not None:
        line = text.count("\n", 0, stranger) + 1
        column = stranger - (text.rfind("\n", 0, stranger) + 1) + 1
        refuse(CODE_BINARY, line, column, "this is not a text file", "a configuration is a YAML file in UTF-8")
        return source
    try:
        root = compose(text)
        if not isinstance(root, MappingNode):
            line, column = (root.line, root.column) if root else (1, 1)
            refuse(CODE_NOT_MAPPING, line, column, f"the configuration is {_kind(root)}, not a mapping", _EXAMPLE)
            return source
        _Unfolding(source).unfold(root)
    except Problem as problem:
        source.problems.append(problem)
    except yaml.MarkedYAMLError as error:
        line, column = yaml_places.error_position(error) or (1, 1)
        refuse(CODE_SYNTAX, line, column, f"this is not YAML: {reason(error)}", _syntax_hint(source.lines, line))
    except (yaml.YAMLError, ValueError, RecursionError):
        refuse(CODE_SYNTAX, 1, 1, "this is not YAML", None)
    if not source.is_readable:
        source.data, source.places = {}, {}
    return source


def read_value(text: str) -> Any:  # noqa: ANN401  # a value of a YAML document
    """Parses a single value of ``--config``. Raises Problem, ValueError and yaml.YAMLError."""
    node = compose(text)
    return None if node is None else _Unfolding(Source(lines=[text])).value(node)


class _Unfolding:
    """Converts nodes to data and follows aliases, within limits."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._left = MAX_VALUES

    def unfold(self, root: MappingNode) -> None:
        _refuse_tag(root)
        self._source.data = self._mapping(root, ())

    def value(self, node: Node) -> Any:  # noqa: ANN401  # a value of a YAML document
        return self._value(node, ())

    def _value(self, node: Node, path: Path) -> object:
        self._left -= 1
        if self._left < 0 or len(path) > MAX_DEPTH:
            raise Problem(CODE_UNSUPPORTED, node.line, node.column, "the aliases expand to too many values", None)
        if isinstance(node, ScalarNode):
            return _scalar(node)
        _refuse_tag(node)
        if isinstance(node, MappingNode):
            return self._mapping(node, path)
        values = []
        assert isinstance(node, SequenceNode)
        for index, item in enumerate(node.items):
            self._source.places.setdefault((*path, index), Place(item.line, item.column, item.line, item.column))
            values.append(self._value(item, (*path, index)))
        return values

    def _mapping(self, node: MappingNode, path: Path) -> dict[str, Any]:
        result: dict[str, Any] = {}
        first: dict[str, Node] = {}
        merged: list[Node] = []
        for key, value in node.pairs:
            if not isinstance(key, ScalarNode):
                raise Problem(CODE_UNSUPPORTED, key.line, key.column, "a key must be a plain text", None)
            if key.is_plain and key.text == "<<":
                merged.append(value)
                continue
            name = key.text
            if name in first:
                at = first[name].line
                self._source.problems.append(
                    Problem(
                        CODE_DUPLICATE,
                        key.line,
                        key.column,
                        f'duplicate key "{name}"',
                        f"the first one is in line {at}",
                    )
                )
                continue
            first[name] = key
            own = (*path, name)
            self._source.places[own] = Place(key.line, key.column, value.line, value.column)
            result[name] = self._value(value, own)
        for value in merged:
            self._merge(value, path, result)
        return result

    def _merge(self, node: Node, path: Path, into: dict[str, Any]) -> None:
        """Applies YAML's ``<<``: adds the keys of the other mapping that are missing here."""
        self._left -= 1
        items = node.items if isinstance(node, SequenceNode) else [node]
        parts = [item for item in items if isinstance(item, MappingNode)]
        if not parts or len(parts) != len(items):
            raise Problem(CODE_UNSUPPORTED, node.line, node.column, '"<<" needs a mapping', None)
        for part in parts:
            places = self._source.places
            self._source.places = {}
            below = self._mapping(part, path)
            unfolded, self._source.places = self._source.places, places
            missing = below.keys() - into.keys()
            into.update((name, value) for name, value in below.items() if name in missing)
            places.update((where, place) for where, place in unfolded.items() if where[len(path)] in missing)


def _refuse_tag(node: Node) -> None:
    if node.tag not in (None, "!", "tag:yaml.org,2002:map", "tag:yaml.org,2002:seq"):
        raise Problem(CODE_UNSUPPORTED, node.line, node.column, f"the YAML tag {node.tag} is not supported", None)


def _scalar(node: ScalarNode) -> object:
    kind = node.tag.removeprefix("tag:yaml.org,2002:") if node.tag else None
    try:
        if kind is None:
            return yaml_scalars.resolve(node.text) if node.is_plain else node.text
        if kind in ("str", "!"):
            return node.text
        if kind in ("int", "float"):
            number = yaml_scalars.number(node.text)
            return float(number) if kind == "float" else int(number)
        if kind in ("bool", "null"):
            return yaml_scalars.resolve(node.text)
    except ValueError as error:
        raise Problem(CODE_UNSUPPORTED, node.line, node.column, str(error), None) from None
    raise Problem(CODE_UNSUPPORTED, node.line, node.column, f"the YAML tag {node.tag} is not supported", None)


def _refuser(source: Source) -> Callable[[str, int, int, str, str | None], None]:
    def refuse(code: str, line: int, column: int, message: str, hint: str | None) -> None:
        source.problems.append(Problem(code, line, column, message, hint))

    return refuse


def _first_control_character(text: str) -> int | None:
    for index, character in enumerate(text):
        if (character < " " and character not in "\t\n\r") or character == "\x7f" or "\ud800" <= character <= "\udfff":
            return index
    return None


def _kind(node: Node | None) -> str:
    if node is None:
        return "empty"
    return "a single value" if isinstance(node, ScalarNode) else "a list"


def _syntax_hint(lines: list[str], line: int) -> str | None:
    for number in (line, line - 1):
        if 0 < number <= len(lines) and _TAB_INDENT.match(lines[number - 1]):
            return "indent YAML with spaces, not with tabs"
    return "check for a missing colon, quote or bracket here or in the line above"
