"""Builds a tree of nodes with positions from YAML events, without recursion, so that no input exhausts the stack."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

from determined import yaml_places

MAX_DEPTH = 64


class Problem(Exception):
    """A part of the text that cannot be used; line and column count from 1."""

    def __init__(self, code: str, line: int, column: int, message: str, hint: str | None) -> None:
        self.code, self.line, self.column, self.message, self.hint = code, line, column, message, hint
        super().__init__(message)


@dataclass
class Node:
    """A value and its position."""

    line: int
    column: int
    tag: str | None


@dataclass
class ScalarNode(Node):
    """A text; ``is_plain`` if it has no quotes and may therefore be a number."""

    text: str = ""
    is_plain: bool = False


@dataclass
class SequenceNode(Node):
    """A list."""

    items: list["Node"] = field(default_factory=list)


@dataclass
class MappingNode(Node):
    """Keys and values in file order, duplicates included."""

    pairs: list[tuple["Node", "Node"]] = field(default_factory=list)
    pending: "Node | None" = None


def compose(text: str) -> Node | None:
    """Returns the root of the only document, None without one. Raises Problem and yaml.YAMLError."""
    root: Node | None = None
    open_nodes: list[Node] = []
    anchors: dict[str | None, Node] = {}
    documents = 0
    for event in _events(text):
        line, column = yaml_places.position(event)
        if isinstance(event, yaml.DocumentStartEvent):
            documents += 1
            if documents > 1:
                raise Problem(
                    "E106",
                    line,
                    column,
                    "a second YAML document begins here; a configuration is a single document",
                    None,
                )
        elif isinstance(event, (yaml.SequenceEndEvent, yaml.MappingEndEvent)):
            open_nodes.pop()
        elif isinstance(event, yaml.NodeEvent):
            node = _node(event, line, column, anchors, open_nodes)
            if open_nodes:
                _attach(open_nodes[-1], node)
            else:
                root = node
            if isinstance(event, yaml.CollectionStartEvent):
                open_nodes.append(node)
                if len(open_nodes) > MAX_DEPTH:
                    raise Problem("E106", line, column, f"nested deeper than {MAX_DEPTH} levels", None)
    return root


def _events(text: str) -> Iterator[yaml.Event]:
    try:
        yield from yaml_places.events(text)
    except yaml.MarkedYAMLError as error:
        if not yaml_places.is_too_deep(error):
            raise
        line, column = yaml_places.error_position(error) or (1, 1)
        raise Problem("E106", line, column, f"nested deeper than {MAX_DEPTH} levels", None) from error


def _node(event: Any, line: int, column: int, anchors: dict[str | None, Node], open_nodes: list[Node]) -> Node:  # noqa: ANN401  # a value of a YAML document
    if isinstance(event, yaml.AliasEvent):
        anchored = anchors.get(event.anchor)
        if anchored is None:
            raise Problem("E106", line, column, f"the alias *{event.anchor} has no anchor above it", None)
        if any(anchored is each for each in open_nodes):
            raise Problem("E106", line, column, f"the alias *{event.anchor} contains itself", None)
        return anchored
    node: Node
    if isinstance(event, yaml.ScalarEvent):
        node = ScalarNode(line, column, event.tag, event.value, event.style is None or event.style == "")
    elif isinstance(event, yaml.SequenceStartEvent):
        node = SequenceNode(line, column, event.tag)
    else:
        node = MappingNode(line, column, event.tag)
    if event.anchor:
        anchors[event.anchor] = node
    return node


def _attach(parent: Node, node: Node) -> None:
    if isinstance(parent, SequenceNode):
        parent.items.append(node)
    elif isinstance(parent, MappingNode):
        if parent.pending is None:
            parent.pending = node
        else:
            parent.pairs.append((parent.pending, node))
            parent.pending = None
