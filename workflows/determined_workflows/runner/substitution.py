"""Fills the placeholders of a template: ``{name}`` and ``[name]``."""

import re
import shlex
from collections.abc import Iterable, Mapping

from determined_workflows.runner.params_file import RESERVED, Template, Value

_PLACEHOLDER = re.compile(r"(?<!\$)\{([\w-]+)\}|\[([\w-]+)\]")
"""``${name}`` is a variable of the shell."""
_LINE_BREAK = re.compile(r"[ \t]*\\?\n\s*")
"""With the backslash before it, where there is one."""


def placeholders(template: Template, params: Mapping[str, Value]) -> dict[str, str]:
    """Returns each placeholder of the template, as it is written, with its parameter.

    A name that begins with a digit, as in ``x[0-9]``, is a placeholder only if a parameter has it.
    """
    found = {match[0]: match[1] or match[2] for match in _PLACEHOLDER.finditer(template.text)}
    return {text: name for text, name in found.items() if name in params or not name[0].isdigit()}


def check_forms(templates: Iterable[Template], params: Mapping[str, Value], aliases: Iterable[str]) -> None:
    """Raises ParamsFileError if a placeholder is an alias, or if a command has a parameter in both forms."""
    for template in templates:
        forms: dict[str, str] = {}
        for text, name in placeholders(template, params).items():
            if name in aliases:
                raise template.place_of(text).error(f"{text}: {name} is an alias; write the parameters that it sets")
            if forms.setdefault(name, text) != text:
                raise template.place_of(text).error(
                    f"{name} is written as {forms[name]} and as {text}; use one form in a command"
                )


def check_values(template: Template, params: Mapping[str, Value], where: str) -> None:
    """Raises ParamsFileError if a placeholder has no value, or none that can be written in its form."""
    for text, name in placeholders(template, params).items():
        if name in RESERVED:
            continue
        if name not in params:
            raise template.place_of(text).error(
                f"{text} in the command {template.name} has no value: default and the choices {where} do not set it"
            )
        value = params[name]
        if not isinstance(value, str | int | float):
            shown = "null" if value is None else f"a {type(value).__name__}"
            raise template.place_of(text).error(
                f"{text} in the command {template.name}: the value of {name} is {shown}; it must be text, a number, "
                f"true or false ({where.removeprefix('in ')})"
            )


def fill(template: Template, values: Mapping[str, Value]) -> str:
    """Returns the command on one line, with its values quoted for the shell.

    >>> from determined_workflows.runner.yaml_documents import Place
    >>> fill(Template("t", "train {lr} [norm] [fast]\\n", Place("f", 1)), {"lr": 0.1, "norm": "a b", "fast": True})
    "train 0.1 --norm 'a b' --fast "
    """
    known = placeholders(template, values)

    def filled(match: re.Match[str]) -> str:
        name = known.get(match[0])
        if name is None:
            return match[0]
        value = values[name]
        if match[1]:
            return shell_value(value)
        if isinstance(value, bool):
            return f"--{name}" if value else ""
        return f"--{name} {shell_value(value)}"

    # Line breaks of the template are folded before values come in: a value may contain one.
    return _PLACEHOLDER.sub(filled, _LINE_BREAK.sub(" ", template.text))


def shell_value(value: Value) -> str:
    return shlex.quote(value) if isinstance(value, str) else str(value)
