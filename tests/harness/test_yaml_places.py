"""Lines and columns of YAML."""

import pytest
import yaml

from determined import yaml_places


def test_a_node_has_its_position_and_its_span():
    text = "a:\n  b: |\n    x\n    y\n"
    root = yaml_places.compose(text)
    assert isinstance(root, yaml.MappingNode)
    inner = root.value[0][1]
    assert yaml_places.position(inner) == (2, 3)
    start, end = yaml_places.span(inner.value[0][1])
    assert text[start:end].split() == ["|", "x", "y"]


def test_an_error_of_the_parser_has_a_position_and_another_error_has_none():
    with pytest.raises(yaml.YAMLError) as raised:
        yaml_places.compose("a: 1\n b: 2\n")
    assert yaml_places.error_position(raised.value) == (2, 3)
    assert yaml_places.error_position(ValueError("other")) is None


@pytest.mark.parametrize(("problem", "is_too_deep"), [("exceeded maximum nesting depth", True), ("a tab", False)])
def test_the_parsers_own_limit_of_nesting_is_known(problem, is_too_deep):
    assert yaml_places.is_too_deep(yaml.MarkedYAMLError(problem=problem)) is is_too_deep
