"""Says in words what a YAML parser did not understand: its own sentences are about its grammar."""

import yaml

_REASONS = {
    "did not find expected ',' or '}'": "a comma or a } is missing",
    "did not find expected ',' or ']'": "a comma or a ] is missing",
    "did not find expected key": "this line does not go with those above it",
    "did not find expected '-' indicator": 'this line does not go with the list above it: its entries begin with "- "',
    "did not find expected <document start>": "this line does not go with those above it",
    "did not find expected node content": "a value is missing",
    "did not find expected alphabetic or numeric character": "a name is missing behind & or *",
    "could not find expected ':'": "a colon is missing",
    "mapping values are not allowed in this context": "a colon is not expected here; a text with a colon needs quotes",
    "block sequence entries are not allowed in this context": "an entry of a list is not expected here",
    "block mapping keys are not allowed in this context": "a key is not expected here",
    "found character that cannot start any token": "this character cannot begin a value",
    "found a tab character that violates indentation": "a tab",
    "found unexpected end of stream": "a quote is not closed",
    "found unexpected document indicator": "a quote is not closed",
    "found unknown escape character": "a \\ in double quotes needs a second one; single quotes take it as it is",
    "found undefined tag handle": "an unknown tag; a text that begins with ! needs quotes",
}


def reason(error: yaml.MarkedYAMLError) -> str:
    """Returns why a text is not YAML.

    >>> try:
    ...     yaml.load("a: [1", yaml.CSafeLoader)
    ... except yaml.MarkedYAMLError as error:
    ...     reason(error)
    'a comma or a ] is missing'
    """
    return _REASONS.get(error.problem or "", "it is not understood from here on")
