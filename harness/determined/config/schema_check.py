"""Checks fields and types of a configuration with pydantic, and describes the findings in our words."""

from collections.abc import Iterator, Mapping
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from determined.config import hyperparameters, searcher, storage, support
from determined.config.diagnostics import Path, render_path
from determined.config.experiment import DEAD_FIELDS, ExperimentConfig
from determined.config.findings import Finding, nearest
from determined.config.model import Model, kind_of
from determined.config.validation_words import in_words
from determined.hyperparameter_tree import is_group

_HAVE_MORE_FIELDS = searcher.GONE.keys() | support.REMOVED_STORAGES.keys()
CHECKED_APART = ("searcher", "checkpoint_storage", "hyperparameters")

_EXPECTED = {
    "string": "a text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "list": "a list",
    "dict": "a mapping",
    "model": "a mapping",
}


def check(data: Mapping[str, Any], merged: Mapping[str, Any]) -> Iterator[Finding]:
    """Yields all errors of fields and types in ``data``; ``merged`` includes the values of the lower layers."""
    own = {key: value for key, value in data.items() if key not in CHECKED_APART and key not in DEAD_FIELDS}
    yield from _sections_of(own, merged)
    yield from _missing_at_top(merged)
    for field, tag, members in (
        ("searcher", "name", searcher.SEARCHERS),
        ("checkpoint_storage", "type", storage.STORAGES),
    ):
        if field in merged:
            yield from _union(field, tag, members, data.get(field, {}), merged[field])
    if "hyperparameters" in data:
        yield from _group(data["hyperparameters"], ("hyperparameters",))


def of_model(model: type[BaseModel], value: object, path: Path) -> Iterator[Finding]:
    """Yields the errors that pydantic finds in ``value`` as a ``model``."""
    try:
        model.model_validate(value)
    except ValidationError as error:
        for details in error.errors(include_url=False):
            yield _finding(model, details, path)


def _sections_of(own: Mapping[str, Any], merged: Mapping[str, Any]) -> Iterator[Finding]:
    missing: list[Finding] = []
    for each in of_model(ExperimentConfig, own, ()):
        if not _may_be_below(each):
            yield each
        elif each.path:  # those at the top are looked for in all layers
            missing.append(each)
    if missing:
        below = list(of_model(ExperimentConfig, {key: merged[key] for key in own}, ()))
        yield from (each for each in missing if each in below)


def _may_be_below(finding: Finding) -> bool:
    """Returns True if a missing field may come from a lower layer; entries of a list are complete by themselves."""
    return finding.code == "E202" and not any(isinstance(step, int) for step in finding.path)


def _missing_at_top(merged: Mapping[str, Any]) -> Iterator[Finding]:
    hints = {
        "entrypoint": 'add "entrypoint: python3 train.py" or "entrypoint: model_def:MyTrial"',
        "searcher": 'add "searcher: {name: single, metric: validation_loss}"',
        "checkpoint_storage": 'add "checkpoint_storage: {type: shared_fs, host_path: /path}"',
    }
    for field, hint in hints.items():
        if field not in merged:
            yield Finding("E202", (), f'missing field "{field}"', hint)


def _union(field: str, tag: str, members: Mapping[str, type[Model]], own: object, merged: object) -> Iterator[Finding]:
    if not isinstance(merged, dict):
        yield Finding("E201", (field,), f'"{field}" is {kind_of(merged)}, expected a mapping')
        return
    chosen = merged.get(tag)
    if chosen is None:
        yield Finding("E202", (field,), f'missing field "{tag}" in {field}', f"one of {', '.join(members)}", "key")
        return
    if not isinstance(chosen, str):
        yield Finding("E201", (field, tag), f'"{tag}" is {kind_of(chosen)}, expected a text')
        return
    if chosen not in members:
        yield from _unknown_member(field, tag, members, chosen)
        yield from _below_unknown(field, tag, members, own, accepts_more=chosen in _HAVE_MORE_FIELDS)
        return
    model = members[chosen]
    if isinstance(own, dict):
        for each in of_model(model, {tag: chosen, **own}, (field,)):
            if not _may_be_below(each):
                yield each
    yield from (each for each in of_model(model, merged, (field,)) if each.code == "E202" and len(each.path) <= 2)


def _unknown_member(field: str, tag: str, members: Mapping[str, type[Model]], chosen: str) -> Iterator[Finding]:
    path: Path = (field, tag)
    if field == "checkpoint_storage" and chosen in support.REMOVED_STORAGES:
        return  # named by the check of what is supported
    if field == "searcher" and chosen in searcher.GONE:
        yield Finding("E402", path, f'the searcher "{chosen}" is no longer supported', searcher.GONE[chosen])
    else:
        near = nearest(chosen, members)
        hint = f'did you mean "{near}"?' if near else f"one of {', '.join(members)}"
        yield Finding("E204", path, f'unknown {field} {tag} "{chosen}"', hint)


def _below_unknown(
    field: str, tag: str, members: Mapping[str, type[Model]], own: object, *, accepts_more: bool
) -> Iterator[Finding]:
    """Yields the other mistakes of a section whose kind is wrong: as far as any known kind has the field."""
    if not isinstance(own, dict):
        return
    known = {name: model for model in members.values() for name in model.model_fields}
    for key, value in own.items():
        if key == tag:
            continue
        if key not in known:
            if not accepts_more:
                near = nearest(str(key), known)
                hint = f'did you mean "{near}"?' if near else None
                yield Finding("E203", (field, key), f'unknown field "{key}" in {field}', hint, "key")
            continue
        found = of_model(known[key], {key: value}, (field,))
        yield from (each for each in found if each.path[:2] == (field, key))


def _group(value: object, path: Path) -> Iterator[Finding]:
    if not isinstance(value, dict):
        yield Finding("E201", path, f'"{render_path(path)}" is {kind_of(value)}, expected a mapping')
        return
    for name, part in value.items():
        where = (*path, name)
        if is_group(part):
            yield from _group(part, where)
        elif isinstance(part, dict):
            yield from _hyperparameter(part, where)


_NAMED_TYPE = 'a hyperparameter of a group that has the name "type" is written as {type: const, val: …}'


def _hyperparameter(value: dict[str, Any], path: Path) -> Iterator[Finding]:
    kind = value["type"]
    if not isinstance(kind, str) or kind not in hyperparameters.TYPES:
        near = nearest(str(kind), hyperparameters.TYPES)
        hint = f'did you mean "{near}"?' if near else f"one of {', '.join(hyperparameters.TYPES)}; {_NAMED_TYPE}"
        yield Finding("E204", (*path, "type"), f'unknown hyperparameter type "{kind}"', hint)
        return
    optional = {key: part for key, part in value.items() if part is not None or key in ("val", "vals")}
    yield from of_model(hyperparameters.TYPES[kind], optional, path)


def _finding(model: type[BaseModel], details: ErrorDetails, path: Path) -> Finding:
    kind = details["type"]
    context: dict[str, Any] = details.get("ctx", {})
    loc: Path = tuple(details["loc"])
    where = (*path, *loc, *context.get("at", ()))
    name = render_path(where)
    if kind[:1] == "E" and kind[1:].isdigit():
        hint = None
        if kind == "E203" and where:
            near = nearest(str(where[-1]), ("batches", "records", "epochs"))
            hint = f'did you mean "{near}"?' if near else None
        return Finding(
            kind,
            where,
            f'"{render_path((*path, *loc))}": {context["message"]}',
            hint,
            "key" if kind == "E203" else "value",
        )
    if kind == "missing":
        return Finding("E202", where[:-1], f'missing field "{where[-1]}"{_inside(where)}', None, "key")
    if kind == "extra_forbidden":
        return Finding("E203", where, f'unknown field "{where[-1]}"{_inside(where)}', _meant(model, loc), "key")
    if kind == "literal_error":
        expected = context["expected"].replace("'", '"')
        return Finding("E204", where, f'"{name}" is {kind_of(details["input"])}, expected {expected}')
    if kind.startswith(("greater_than", "less_than")) or kind in ("too_short", "string_too_short"):
        return Finding("E303" if loc[-1:] == ("slots_per_trial",) else "E205", where, f'"{name}": {_bound(details)}')
    for prefix, expected in _EXPECTED.items():
        if kind in (f"{prefix}_type", f"{prefix}_parsing", f"{prefix}_attributes_type"):
            return Finding(
                "E201", where, f'"{name}" is {kind_of(details["input"])}, expected {expected}', _unquote(details)
            )
    return Finding("E206", where, f'"{name}": {in_words(details)}')


def _inside(where: Path) -> str:
    return f" in {render_path(where[:-1])}" if len(where) > 1 else ""


def _bound(details: ErrorDetails) -> str:
    context: dict[str, Any] = details.get("ctx", {})
    for key, words in (("ge", "at least"), ("gt", "more than"), ("le", "at most"), ("lt", "less than")):
        if key in context:
            return f"must be {words} {context[key]}, is {details['input']}"
    return "must not be empty"


def _unquote(details: ErrorDetails) -> str | None:
    value = details["input"]
    if details["type"].startswith(("int", "float", "bool")) and isinstance(value, str):
        return "remove the quotes" if value.replace(".", "", 1).isdigit() or value in ("true", "false") else None
    if details["type"].startswith("string") and isinstance(value, (int, float, bool)):
        return "put it in quotes"
    return None


_MOVED = {
    "slots": 'the name is "slots_per_trial"',
    "max_steps": 'the length of training is "searcher.max_length"',
    "batches_per_step": 'the name is "scheduling_unit"',
    "template": "templates are not supported yet",
}


def _meant(model: type[BaseModel], loc: Path) -> str | None:
    word = str(loc[-1])
    if model is searcher.GridSearcher and word == "max_trials":
        return "a grid search tries every point; remove it, or use the random searcher"
    if model is searcher.ListSearcher and word == "max_trials":
        return "a list search runs each of its trials; remove it"
    if model is searcher.AsyncHalvingSearcher and word in ("max_rungs", "bracket_rungs", "mode"):
        return "async_halving has one bracket of num_rungs rungs; adaptive_asha has several"
    if model is searcher.AdaptiveAshaSearcher and word == "num_rungs":
        return 'adaptive_asha has "max_rungs"'
    if model is searcher.SingleSearcher and word in searcher.RandomSearcher.model_fields:
        return "the single searcher has one trial; remove it, or use the random searcher"
    if word in _MOVED:
        return _MOVED[word]
    for section, inner in _sections():
        if word in inner.model_fields:
            return f'"{word}" belongs under "{section}"'
    near = nearest(word, _fields_at(model, loc[:-1]))
    return f'did you mean "{near}"?' if near else None


def _fields_at(model: type[BaseModel], loc: Path) -> list[str]:
    for step in loc:
        if isinstance(step, str) and step in model.model_fields:
            found = _model_in(model.model_fields[step].annotation)
            if found is None:
                return []
            model = found
    names = list(model.model_fields)
    return names + list(DEAD_FIELDS) if model is ExperimentConfig else names


def _model_in(annotation: object) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for part in get_args(annotation) if (found := _model_in(part))), None)


def _sections() -> Iterator[tuple[str, type[BaseModel]]]:
    yield "searcher", searcher.RandomSearcher
    for name, field in ExperimentConfig.model_fields.items():
        found = _model_in(field.annotation)
        if found is not None and name not in CHECKED_APART:
            yield name, found
    for kind in storage.STORAGES.values():
        yield "checkpoint_storage", kind
