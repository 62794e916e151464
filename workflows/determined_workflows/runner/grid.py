"""Expands a file of parameters into tasks."""

import itertools
import math
import random
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from determined_workflows.runner import substitution
from determined_workflows.runner.errors import ParamsFileError
from determined_workflows.runner.params_file import Choices, ParamsFile, Template, Value, is_own
from determined_workflows.runner.task_name import task_name
from determined_workflows.runner.yaml_documents import Place

MAX_TASKS = 100_000
MAX_NAME_BYTES = 255  # what file systems allow


@dataclass(frozen=True)
class Selection:
    """The part of a grid to run."""

    title: str | None = None
    commands: Sequence[str] | None = None
    sample: int | None = None


@dataclass(frozen=True)
class Task:
    """One point of the grid."""

    name: str
    output: Path
    params: Mapping[str, Value]
    templates: tuple[Template, ...]

    def command(self, template: Template, time: str) -> str:
        """Returns the command line of one template."""
        own = {"_output": str(self.output), "_name": self.name, "_time": time}
        return substitution.fill(template, {**self.params, **own})


def tasks(file: ParamsFile, output: Path, selection: Selection, *, has_subfolders: bool = True) -> list[Task]:
    """Returns the tasks in their order. Raises ParamsFileError for everything that would go wrong in one of them."""
    by_name = {template.name: template for template in file.templates}
    for command in selection.commands or ():
        if command not in by_name:
            raise ParamsFileError(f"no command is called {command}; there are {', '.join(by_name)}")
    tasks_by_values: dict[tuple[object, ...], Task] = {}
    names: dict[str, tuple[Place, tuple[object, ...]]] = {}
    chosen = _chosen(file, selection.title)
    _check_forms(file)
    for choices in chosen:
        _warn_of_overlaps(file, choices)
        used = selection.commands or choices.commands or tuple(by_name)
        templates = tuple(template for template in file.templates if template.name in used)
        if not templates:
            continue  # of which params_file has warned
        for point in _points(choices, selection.sample):
            params = _params(file, point)
            for template in templates:
                substitution.check_values(template, params, f"in line {choices.place.line}")
            key = _identity(params)
            if key in tasks_by_values:
                tasks_by_values[key] = _with_commands(tasks_by_values[key], templates, file)
                continue
            name = _checked_name(point, choices)
            if name in names:
                choices.place.warn(
                    f"two different tasks have the name {name}, and only the first runs, which is of the choices in "
                    f"line {names[name][0].line}; change a value or a parameter's name"
                )
                first = names[name][1]
                tasks_by_values[first] = _with_commands(tasks_by_values[first], templates, file)
                continue
            names[name] = choices.place, key
            tasks_by_values[key] = Task(name, output / name if has_subfolders else output, params, templates)
            if len(tasks_by_values) > MAX_TASKS:
                raise choices.place.error(f"the grid has more than {MAX_TASKS:,} tasks; split it or use --sample")
    return list(tasks_by_values.values())


def _with_commands(task: Task, templates: tuple[Template, ...], file: ParamsFile) -> Task:
    """Returns a task with more commands, in the order of the file."""
    both = {template.name for template in (*task.templates, *templates)}
    return replace(task, templates=tuple(template for template in file.templates if template.name in both))


def orphans(file: ParamsFile, found: Sequence[Task]) -> set[str]:
    """Returns the parameters that no template of the file uses."""
    params = {name: value for task in found for name, value in task.params.items()}
    used = {name for template in file.templates for name in substitution.placeholders(template, params).values()}
    return set(params) - used


def _chosen(file: ParamsFile, title: str | None) -> list[Choices]:
    chosen = [choices for choices in file.choices if title is None or choices.title == title]
    if not chosen:
        titles = sorted({choices.title for choices in file.choices if choices.title})
        raise ParamsFileError(f"no choices have the title {title}; there are {', '.join(titles) or 'none'}")
    return chosen


def _check_forms(file: ParamsFile) -> None:
    params = {**file.default}
    for choices in file.choices:
        params.update({name: values[0] for name, values in choices.values.items() if values})
    substitution.check_forms(file.templates, params, file.alias)


def _points(choices: Choices, sample: int | None) -> Iterator[dict[str, Value]]:
    columns = list(choices.values.values())
    chosen: Iterable[tuple[Value, ...]] = itertools.product(*columns)
    if sample is not None:
        total = math.prod(map(len, columns))
        # One more than a grid may have, so that too large a sample is refused like too large a grid.
        chosen = (_point_at(index, columns) for index in sorted(_draw(total, min(sample, total, MAX_TASKS + 1))))
    for values in chosen:
        yield dict(zip(choices.values, values, strict=True))


def _draw(total: int, count: int) -> Iterable[int]:
    """Returns ``count`` different numbers below ``total``."""
    if total <= sys.maxsize:
        return random.sample(range(total), count)
    numbers: set[int] = set()
    while len(numbers) < count:
        numbers.add(random.randrange(total))
    return numbers


def _point_at(index: int, columns: Sequence[Sequence[Value]]) -> tuple[Value, ...]:
    """Returns the point that ``itertools.product`` yields at ``index``: the last column changes fastest."""
    values: list[Value] = []
    for column in reversed(columns):
        index, place = divmod(index, len(column))
        values.append(column[place])
    return tuple(reversed(values))


def _params(file: ParamsFile, point: Mapping[str, Value]) -> dict[str, Value]:
    """Returns the parameters of a point: defaults, then the choices, then what aliases set, in their order."""
    params = {name: value for name, value in file.default.items() if name not in file.alias}
    for name, case in file.default.items():
        if name in file.alias and name not in point:
            params.update(file.alias[name][case])
    params.update({name: value for name, value in point.items() if name not in file.alias and not is_own(name)})
    for name, case in point.items():
        params.update(file.alias[name][case] if name in file.alias else {})
    return params


def _warn_of_overlaps(file: ParamsFile, choices: Choices) -> None:
    """Warns of parameters that are set twice: an alias counts before a choice, and a later alias before an earlier."""
    setters: dict[str, str] = {name: name for name in choices.values if name not in file.alias}
    for name in choices.values:
        for param in next(iter(file.alias.get(name, {}).values()), {}):
            if param in setters:
                choices.places[name].warn(f"{param} is set by {setters[param]} and by {name}; {name} counts")
            setters[param] = name


def _identity(params: Mapping[str, Value]) -> tuple[object, ...]:
    """Returns the parameters in a form in which 1 and 1.0 are equal, and 1 and true are not."""
    return tuple(
        (
            name,
            isinstance(value, bool),
            type(value) is str,
            value if isinstance(value, str | int | float) else repr(value),
        )
        for name, value in sorted(params.items(), key=lambda item: item[0])
    )


def _checked_name(point: Mapping[str, Value], choices: Choices) -> str:
    name = task_name(point)
    if len(name.encode()) > MAX_NAME_BYTES:
        raise choices.place.error(f"the name of a task is longer than {MAX_NAME_BYTES} bytes: {name[:80]}…")
    if any(character < " " or character == "\x7f" for character in name):
        choices.place.warn(f"the name of a task has control characters: {name!r}")
    return name
