"""Checks a configuration: text in, diagnostics and a frozen configuration out. Never raises on bad input."""

import itertools
import random
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from determined.config import cross_field_rules, entrypoint_check, schema_check, support, yaml_source
from determined.config.config_merge import merge, without_nulls
from determined.config.default_name import experiment_name
from determined.config.diagnostics import Diagnostic, Path, render, render_path
from determined.config.experiment import DEAD_FIELDS, DEFAULT_POLICIES, UINT32, ExperimentConfig
from determined.config.findings import Finding
from determined.config.hyperparameters import normalise
from determined.config.pool_layers import PoolLayers
from determined.config.searcher import SEARCHERS
from determined.config.storage import STORAGES
from determined.config.validation_words import in_words
from determined.config.whole_numbers import with_whole_numbers

MAX_ERRORS = 100


@dataclass(frozen=True)
class CheckResult:
    """The result of a check.

    Attributes:
        config: the completed configuration; None if and only if there are errors.
        submitted: the content of the text alone, without defaults.
        without_containers: warnings that hold only where no agent runs tasks in containers. They are among
            ``diagnostics`` too, unless the check was told that the cluster has such agents.
    """

    name: str
    diagnostics: tuple[Diagnostic, ...]
    config: ExperimentConfig | None
    lines: tuple[str, ...] = field(repr=False, default=())
    submitted: Mapping[str, Any] = field(repr=False, default_factory=dict)
    without_containers: tuple[Diagnostic, ...] = ()

    @property
    def ok(self) -> bool:
        """Returns True if there are no errors; warnings are allowed."""
        return self.config is not None

    def render(self) -> str:
        """Returns all diagnostics as text for people, in file order."""
        return render(self.name, self.lines, self.diagnostics)


def check(
    text: str,
    *,
    name: str = "config.yaml",
    defaults: Sequence[Mapping[str, Any]] = (),
    seed: int | None = None,
    now: float | None = None,
    has_containers: bool = False,
    pools: PoolLayers | None = None,
) -> CheckResult:
    """Checks a configuration and fills in what it leaves open.

    ``defaults`` are merged under the text, the first wins. ``seed`` makes the default name the same each time;
    ``now`` is the time that the default ``experiment_seed`` is taken from. ``has_containers`` is True if the cluster
    has agents that run tasks in containers: what only containers support is warned about otherwise. ``pools``: what is
    merged between the text and ``defaults`` for the pool that the text names.

    >>> text = "entrypoint: a.py\\nsearcher: {name: single, metric: loss}\\nscheduling_units: 3"
    >>> print(check(text, defaults=[{"checkpoint_storage": {"type": "shared_fs", "host_path": "/c"}}]).render())
    config.yaml:3:1: error[E203]: unknown field "scheduling_units"
      scheduling_units: 3
      ^
    help: did you mean "scheduling_unit"?
    """
    document = yaml_source.read(text)
    lines = tuple(document.lines)
    diagnostics = [
        Diagnostic("error", each.code, each.message, "", each.line, each.column, each.hint)
        for each in document.problems[:MAX_ERRORS]
    ]
    if not document.is_readable:
        return CheckResult(name, tuple(_ordered(diagnostics)), None, lines)
    own = without_nulls(with_whole_numbers(document.data, ExperimentConfig))
    merged = own
    of_pool = pools.below(own, "slots_per_trial", ExperimentConfig.model_fields) if pools else {}
    for layer in (of_pool, *defaults, _last_layer(seed, now)):
        merged = merge(merged, without_nulls(with_whole_numbers(layer, ExperimentConfig)))
    rules = (
        schema_check.check(own, merged),
        cross_field_rules.check(merged),
        entrypoint_check.check(merged),
        support.check(own, merged),
    )
    findings = _up_to_limit(itertools.chain(*rules))
    config = None
    if not diagnostics and not any(each.severity == "error" for each in findings):
        config = _build(merged, findings)
    diagnostics += [_placed(each, document) for each in findings if not (has_containers and each.without_containers)]
    without_containers = tuple(_ordered([_placed(each, document) for each in findings if each.without_containers]))
    return CheckResult(name, tuple(_ordered(diagnostics)), config, lines, document.data, without_containers)


def check_changes(changes: Mapping[str, Any]) -> list[Finding]:
    """Returns the errors of values that replace some of a configuration: the rules are those of submission.

    ``changes`` has whole sections or values by their top-level names. The rest of the configuration, which may be very
    long, is not looked at.

    >>> storage = {"type": "shared_fs", "host_path": "/c", "save_trial_best": -1}
    >>> [each.message for each in check_changes({"checkpoint_storage": storage})]
    ['"checkpoint_storage.save_trial_best": must be at least 0, is -1']
    """
    own = without_nulls(with_whole_numbers(changes, ExperimentConfig))
    rules = (schema_check.check(own, own), cross_field_rules.check(own))
    return [each for each in _up_to_limit(itertools.chain(*rules)) if each.path[:1] and each.path[0] in own]


def located(text: str, diagnostics: Iterable[Diagnostic], findings: Iterable[Finding]) -> tuple[Diagnostic, ...]:
    """Returns the diagnostics of a configuration together with findings of another check, in file order."""
    document = yaml_source.read(text)
    return tuple(_ordered([*diagnostics, *(_placed(each, document) for each in findings)]))


def _up_to_limit(findings: Iterable[Finding]) -> list[Finding]:
    """Stops after a number of errors: each costs a search for the nearest name, and nobody reads thousands."""
    kept: list[Finding] = []
    errors = 0
    for each in findings:
        kept.append(each)
        errors += each.severity == "error"
        if errors == MAX_ERRORS:
            kept.append(Finding("E206", (), f"these are the first {MAX_ERRORS} errors; there may be more"))
            break
    return kept


def _last_layer(seed: int | None, now: float | None) -> dict[str, Any]:
    """Returns the defaults that differ each time, and the lists that are prepended to submitted lists."""
    rng = random.Random(seed)
    moment = int(time.time() if now is None else now)
    return {
        "name": experiment_name(rng),
        "reproducibility": {"experiment_seed": moment & UINT32},
        "log_policies": [{"name": each.name, "pattern": each.pattern} for each in DEFAULT_POLICIES],
    }


def _build(merged: dict[str, Any], findings: list[Finding]) -> ExperimentConfig | None:
    values = {key: value for key, value in merged.items() if key not in DEAD_FIELDS}
    try:
        values["searcher"] = SEARCHERS[values["searcher"]["name"]].model_validate(values["searcher"])
        storage = values["checkpoint_storage"]
        values["checkpoint_storage"] = STORAGES[storage["type"]].model_validate(storage)
        values["hyperparameters"] = normalise(values.get("hyperparameters", {}))
        return ExperimentConfig.model_validate(values)
    except (ValidationError, KeyError, TypeError, AttributeError) as error:
        # The text itself passed, so a layer below it is wrong; its own file is elsewhere.
        details = error.errors(include_url=False) if isinstance(error, ValidationError) else []
        for each in details:
            path: Path = tuple(each["loc"])
            findings.append(Finding("E206", path, f'"{render_path(path)}" from the defaults: {in_words(each)}'))
        if not details:
            sections = [name for name in ("searcher", "checkpoint_storage", "hyperparameters") if name in values]
            message = f"the cluster's defaults do not go with this configuration; look at {', '.join(sections)}"
            findings.append(Finding("E206", (), message, "an admin sees them with: det master config"))
        return None


def _placed(finding: Finding, document: yaml_source.Source) -> Diagnostic:
    line = column = 1
    path = finding.path
    while path and path not in document.places:
        path = path[:-1]
    if path:
        place = document.places[path]
        at_key = finding.at == "key" or path != finding.path
        line, column = (place.line, place.column) if at_key else (place.value_line, place.value_column)
    return Diagnostic(
        finding.severity, finding.code, finding.message, render_path(finding.path), line, column, finding.hint
    )


def _ordered(found: list[Diagnostic]) -> list[Diagnostic]:
    unique = dict.fromkeys(found)
    return sorted(unique, key=lambda each: (each.line, each.column, each.code, each.path))
