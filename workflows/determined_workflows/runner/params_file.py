"""Reads ``params.yaml``: one document with templates and resources, then documents with choices."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from determined_workflows.runner import yaml_documents
from determined_workflows.runner.errors import ParamsFileError
from determined_workflows.runner.yaml_documents import Document, Place

Value = object
"""A value of YAML. What a command uses is text, a number, true or false; others appear only in the folder's name."""
FIRST_KEYS = ("template", "default", "resource", "alias")
CHOICE_KEYS = ("_title", "_cmd")
RESERVED = ("_output", "_name", "_time")


@dataclass(frozen=True)
class Template:
    """A named command. ``lines`` are its source lines with their numbers, for errors."""

    name: str
    text: str
    place: Place
    lines: tuple[tuple[int, str], ...] = ()

    def place_of(self, text: str) -> Place:
        """Returns the position of ``text`` in the file, or the template's if it is broken over lines."""
        for number, line in self.lines:
            if text in line:
                return Place(self.place.file, number, line.index(text) + 1)
        return self.place


@dataclass(frozen=True)
class Choices:
    """One document of choices: parameter or alias → its values."""

    place: Place
    values: Mapping[str, tuple[Value, ...]]
    places: Mapping[str, Place]
    title: str | None = None
    commands: tuple[str, ...] | None = None


@dataclass(frozen=True)
class ParamsFile:
    """The content of a file that can be used as it is."""

    text: str
    templates: tuple[Template, ...]
    resources: tuple[str, ...]
    default: Mapping[str, Value]
    choices: tuple[Choices, ...]
    alias: Mapping[str, Mapping[Value, Mapping[str, Value]]] = field(default_factory=dict)


def read(path: Path) -> ParamsFile:
    """Reads and checks a file. Raises ParamsFileError, with file, line and column."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ParamsFileError(f"{path} does not exist; `det runner init` writes an example") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ParamsFileError(f"{path} cannot be read: {error}") from None
    return parse(text, str(path))


def parse(text: str, file: str) -> ParamsFile:
    """Returns the content of ``text``; ``file`` is the name in errors. Raises ParamsFileError."""
    try:
        documents = yaml_documents.read(text, file)
    except yaml.MarkedYAMLError as error:
        raise yaml_documents.place_of(error, file).error(
            f"this is not YAML: {error.problem or error.context}"
        ) from None
    except ValueError as error:
        raise Place(file, 1).error(f"this is not YAML: {error}") from None
    except (yaml.YAMLError, RecursionError):
        raise Place(file, 1).error("this is not YAML") from None
    if not documents:
        raise Place(file, 1).error("the file is empty; `det runner init` writes an example")
    first = documents[0]
    for key in first.data:
        if key not in FIRST_KEYS:
            first.place(key).warn(f'unknown key "{key}" has no effect; the first document has {", ".join(FIRST_KEYS)}')
    templates = tuple(_templates(first, text))
    alias = _alias(first)
    names = [template.name for template in templates]
    given = [document for document in documents[1:] if document.data]
    choices = tuple(_choices(document, names, alias) for document in given)
    if not choices:
        raise Place(file, text.count("\n") + 1).error("no choices: add `---` and a document such as `seed: [1, 2]`")
    default = _params(first, ("default",))
    for name, value in default.items():
        if name in alias and not _has_case(alias[name], value):
            raise first.place("default", name).error(f"alias {name} has no case {value!r}")
    return ParamsFile(text, templates, _resources(first), default, choices, alias)


def _templates(first: Document, text: str) -> Iterator[Template]:
    found = first.data.get("template")
    if not isinstance(found, dict) or not found:
        raise first.place("template").error("template must map names to commands, at least one")
    lines = text.split("\n")
    for name, command in found.items():
        place = first.place("template", name)
        if name is None or not str(name).isprintable() or re.search(r"^$|/", str(name)):
            raise place.error(f"the name of a command is text without slashes and control characters, not {name!r}")
        if not isinstance(command, str):
            raise place.error(f"the command {name} must be text")
        if "\0" in command:
            raise place.error(f"the command {name} contains a null character")
        start, end = first.span("template", name)
        source = tuple((number, lines[number - 1]) for number in range(start, min(end, len(lines)) + 1))
        yield Template(str(name), command, place, source)


def _resources(first: Document) -> tuple[str, ...]:
    section = first.data.get("resource")
    if not isinstance(section, list) or not section:
        raise first.place("resource").error(
            'resource must be a list with one entry for each worker, such as [0, "1,2"]'
        )
    for index, entry in enumerate(section):
        if isinstance(entry, bool) or not isinstance(entry, str | int):
            first.place("resource", index).warn(
                f'a resource is a number or text such as "1,2"; {entry!r} becomes CUDA_VISIBLE_DEVICES={entry}'
            )
    return tuple(str(entry) for entry in section)


def _params(document: Document, path: tuple[object, ...]) -> dict[str, Value]:
    params = document.data
    for step in path:
        params = params.get(step) or {}
    if not isinstance(params, dict):
        raise document.place(*path).error(f"{path[-1]} must map parameters to values")
    for name, value in params.items():
        place = document.place(*path, name)
        _check_name(name, place)
        _check_value(name, value, place)
    return {name: value for name, value in params.items() if not is_own(name)}


def _alias(first: Document) -> dict[str, dict[Value, dict[str, Value]]]:
    found = first.data.get("alias") or {}
    if not isinstance(found, dict):
        raise first.place("alias").error("alias must map names to cases")
    result: dict[str, dict[Value, dict[str, Value]]] = {}
    for name, cases in found.items():
        place = first.place("alias", name)
        _check_name(name, place)
        if not isinstance(cases, dict) or not cases:
            raise place.error(f"alias {name} must map cases to parameters")
        result[name] = {case: _params(first, ("alias", name, case)) for case in cases}
        expected = set(next(iter(result[name].values())))
        for case, params in result[name].items():
            if set(params) != expected or not params:
                raise first.place("alias", name, case).error(
                    f"all cases of alias {name} must set the same parameters: "
                    f"{', '.join(sorted(expected)) or 'none'}, but {case} sets {', '.join(sorted(params)) or 'none'}"
                )
    return result


def _choices(document: Document, names: list[str], alias: Mapping[str, Mapping[Value, object]]) -> Choices:
    values: dict[str, tuple[Value, ...]] = {}
    for name, choice in document.data.items():
        place = document.place(name)
        if name in CHOICE_KEYS:
            continue
        _check_name(name, place)
        listed = choice if isinstance(choice, list) else [choice]
        if not listed:
            place.warn(f"{name} has no values, so that this document has no tasks")
        for index, value in enumerate(listed):
            _check_value(name, value, document.place(name, index) if isinstance(choice, list) else place)
            if name in alias and not _has_case(alias[name], value):
                raise place.error(f"alias {name} has no case {value!r}; it has {', '.join(map(str, alias[name]))}")
        values[name] = tuple(listed)
    title = document.data.get("_title")
    commands = document.data.get("_cmd")
    if commands is not None:
        commands = tuple(commands if isinstance(commands, list) else [commands])
        for command in commands:
            if str(command) not in names:
                document.place("_cmd").warn(f"no command is called {command}; there are {', '.join(names)}")
        commands = tuple(str(command) for command in commands)
    if not values:
        document.start.warn(
            "this document has no parameters: its one task has the defaults, and the output itself as its folder"
        )
    places = {name: document.place(name) for name in values}
    return Choices(document.start, values, places, None if title is None else str(title), commands)


def is_own(name: str) -> bool:
    """Returns True for a parameter that only names the folder, since its value is the runner's own."""
    return name in (*RESERVED, "_scripts")


def _has_case(cases: Mapping[Value, object], value: Value) -> bool:
    return isinstance(value, str | int | float) and value in cases


def _check_name(name: object, place: Place) -> None:
    if not isinstance(name, str) or not name or "/" in name or "\0" in name:
        raise place.error(f"the name of a parameter is text without slashes, not {name!r}")
    if is_own(name):
        place.warn(f"{name} only names the folder: its value in commands is that of the runner")


def _check_value(name: str, value: object, place: Place) -> None:
    if isinstance(value, str) and "\0" in value:
        raise place.error(f"the value of {name} contains a null character, which no command can have")
