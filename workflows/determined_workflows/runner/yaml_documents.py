"""Reads the documents of a YAML file as plain data with the position of each key and value.

The runner is also a distribution of its own, without ``determined.yaml_places``.
"""

import logging
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

from determined_workflows.runner.errors import ParamsFileError

logger = logging.getLogger(__name__)
_MERGE = "tag:yaml.org,2002:merge"
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
Path = tuple[object, ...]
MAX_VALUES = 300_000
"""Of a document, as often as its aliases repeat them."""


@dataclass(frozen=True)
class Place:
    """A position in the file; line and column count from 1."""

    file: str
    line: int
    column: int = 1

    def error(self, message: str) -> ParamsFileError:
        return ParamsFileError(f"{self.file}:{self.line}:{self.column}: {message}")

    def warn(self, message: str) -> None:
        """Logs a warning about what is taken as the original takes it, although it may be a mistake."""
        logger.warning("%s:%d:%d: warning: %s", self.file, self.line, self.column, message)


@dataclass
class Document:
    """A mapping with the positions of what is in it."""

    data: dict[Any, Any]
    start: Place
    places: dict[Path, Place] = field(default_factory=dict)
    spans: dict[Path, tuple[int, int]] = field(default_factory=dict)

    def place(self, *path: object) -> Place:
        """Returns the position of a key or list entry; the document's if it is missing."""
        return self.places.get(path, self.start)

    def span(self, *path: object) -> tuple[int, int]:
        """Returns the first and last line of a value."""
        return self.spans.get(path, (self.start.line, self.start.line))


def read(text: str, file: str) -> list[Document]:
    """Returns the documents; an empty one has no keys. Raises yaml.YAMLError, ValueError and ParamsFileError."""
    return list(_documents(text, file))


def place_of(error: yaml.MarkedYAMLError, file: str) -> Place:
    """Returns the position of what the parser did not understand."""
    mark = error.problem_mark or error.context_mark
    return Place(file, mark.line + 1, mark.column + 1) if mark else Place(file, 1)


def _documents(text: str, file: str) -> Iterator[Document]:
    loader = _LOADER(text)
    try:
        while loader.check_node():
            node: Any = loader.get_node()
            start = _place(node, file)
            document = Document({}, start)
            if isinstance(node, yaml.MappingNode):
                _walk(loader, node, (), document, file, set())
                document.data = loader.construct_document(node)
            elif node.value != "":
                raise start.error("a document of this file is a mapping: lines such as `seed: [1, 2]`")
            yield document
    finally:
        loader.dispose()


def _walk(
    loader: Any,  # noqa: ANN401  # no stubs
    node: yaml.Node,
    path: Path,
    document: Document,
    file: str,
    above: set[yaml.Node],
) -> None:
    """Notes the places of a node and of those below it. ``above``: the nodes that it is in."""
    if node in above:
        raise _place(node, file).error("this value contains itself, by an alias")
    if len(document.spans) >= MAX_VALUES:
        raise _place(node, file).error(f"with its aliases the document has more than {MAX_VALUES:,} values")
    document.spans[path] = (node.start_mark.line + 1, node.end_mark.line + 1)
    above.add(node)
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.tag == _MERGE:
                continue
            name = loader.construct_object(key, deep=True) if isinstance(key, yaml.ScalarNode) else None
            own = (*path, name)
            if name is None:
                raise _place(key, file).error("a key must be text")
            if own in document.places:
                _place(key, file).warn(f"duplicate key {name!r}: this value counts, not the one before")
            document.places[own] = _place(key, file)
            _walk(loader, value, own, document, file, above)
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            document.places[(*path, index)] = _place(value, file)
            _walk(loader, value, (*path, index), document, file, above)
    above.remove(node)


def _place(node: yaml.Node, file: str) -> Place:
    return Place(file, node.start_mark.line + 1, node.start_mark.column + 1)
