"""Rules between fields of a configuration. Each looks at raw values and is silent if their types are wrong."""

import math
import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any, TypeGuard

from determined.config import pause, searcher_rules
from determined.config.diagnostics import Path, render_path
from determined.config.experiment import DEAD_FIELDS, DEFAULT_POLICIES
from determined.config.findings import Finding
from determined.hyperparameter_tree import is_group
from determined.metric_directions import GOALS

Config = Mapping[str, Any]
MAX_GRID_POINTS = 100_000
MAX_LOG_POLICIES = 100
"""Maximum number of log policies, defaults included."""
_DEFAULT_POLICIES = {policy.name for policy in DEFAULT_POLICIES}


def check(config: Config) -> Iterator[Finding]:
    """Applies all rules to a merged configuration."""
    for rule in _RULES:
        yield from rule(config)


def _slots(config: Config) -> Iterator[Finding]:
    slots, most = _int(config, "resources", "slots_per_trial"), _int(config, "resources", "max_slots")
    if most is not None and (slots := 1 if slots is None else slots) > most >= 0:
        message = f"a trial needs {slots} slots but max_slots allows at most {most}"
        yield Finding("E303", ("resources", "max_slots"), message, "raise max_slots or lower slots_per_trial")


def _project(config: Config) -> Iterator[Finding]:
    workspace, project = config.get("workspace"), config.get("project")
    if bool(workspace) != bool(project):
        given, missing = ("workspace", "project") if workspace else ("project", "workspace")
        yield Finding("E304", (given,), f'"{given}" is given without "{missing}"', "give both or neither", "key")


def _hyperparameters(config: Config) -> Iterator[Finding]:
    searcher = config.get("searcher")
    is_grid = isinstance(searcher, dict) and searcher.get("name") == "grid"
    hyperparameters = config.get("hyperparameters")
    if not isinstance(hyperparameters, dict):
        return
    yield from _ranges_in(hyperparameters, ("hyperparameters",), is_grid)
    points = math.prod(map(_grid_points, hyperparameters.values())) if is_grid else 0
    if points > MAX_GRID_POINTS:
        message = f"the grid has {points:,} points; a search may have at most {MAX_GRID_POINTS:,} trials"
        hint = 'lower "count", list fewer "vals", or use the random searcher with "max_trials"'
        yield Finding("E310", ("hyperparameters",), message, hint, "key")


def _grid_points(value: Any) -> int:  # noqa: ANN401  # a value of a YAML document
    """Returns the number of combinations; a value of the wrong type counts as one."""
    if is_group(value):
        return math.prod(_grid_points(part) for part in value.values())
    if not isinstance(value, dict):
        return 1
    vals, count = value.get("vals"), value.get("count")
    if value.get("type") == "categorical":
        return len(vals) if isinstance(vals, list) else 1
    if value.get("type") not in ("int", "double", "log") or not isinstance(count, int) or count < 1:
        return 1
    low, high = value.get("minval"), value.get("maxval")
    if value["type"] == "int" and isinstance(low, int) and isinstance(high, int):
        return max(1, min(count, high - low + 1))
    return count


def _ranges_in(group: Mapping[str, Any], path: Path, is_grid: bool) -> Iterator[Finding]:
    for name, part in group.items():
        yield from _ranges(part, (*path, name), is_grid)


def _ranges(value: Any, path: Path, is_grid: bool) -> Iterator[Finding]:  # noqa: ANN401  # a value of a YAML document
    if is_group(value):
        yield from _ranges_in(value, path, is_grid)
        return
    if not isinstance(value, dict) or value.get("type") not in ("int", "double", "log"):
        return
    low, high = value.get("minval"), value.get("maxval")
    if _is_number(low) and _is_number(high) and low >= high:
        message = f"{render_path(path)}: minval {low} is not less than maxval {high}"
        hint = "write a single value as a constant" if low == high else "swap them"
        yield Finding("E301", (*path, "minval"), message, hint)
    if value["type"] == "log" and _is_number(high) and _is_number(low):
        yield from _log_range(value, path)
    if is_grid and value.get("count") is None:
        yield Finding("E305", path, f'{render_path(path)} needs a "count" in a grid search', 'add "count: 5"', "key")


def _log_range(value: dict[str, Any], path: Path) -> Iterator[Finding]:
    base = value.get("base", 10.0)
    if not _is_number(base) or base <= 0:
        return
    for end in ("minval", "maxval"):
        try:
            math.pow(base, value[end])
        except OverflowError:
            message = f"{render_path(path)}: {base} to the power of {value[end]} is not a finite number"
            yield Finding("E205", (*path, end), message, "minval and maxval of a log hyperparameter are exponents")


def _storage(config: Config) -> Iterator[Finding]:
    storage = config.get("checkpoint_storage")
    if not isinstance(storage, dict):
        return
    if storage.get("type") == "azure":
        yield from _azure(storage)
    host, inner = storage.get("host_path"), storage.get("storage_path")
    if storage.get("type") != "shared_fs" or not isinstance(host, str) or not isinstance(inner, str):
        return
    if inner.startswith("/") and not PurePosixPath(inner).is_relative_to(host):
        message = f'storage_path "{inner}" is not below host_path "{host}"'
        yield Finding("E306", ("checkpoint_storage", "storage_path"), message, "use a path relative to host_path")


def _azure(storage: dict[str, Any]) -> Iterator[Finding]:
    has_string, has_url = "connection_string" in storage, "account_url" in storage
    if has_string == has_url:
        message = "azure needs exactly one of connection_string and account_url"
        yield Finding("E306", ("checkpoint_storage",), message, None, "key")
    url = storage.get("account_url")
    if isinstance(url, str) and not re.fullmatch(r"https://[^/?#@\s]+/?", url):
        message = f"{url} is not the address of an account, such as https://lab.blob.core.windows.net"
        hint = "give a connection_string for an address with http or a path"
        yield Finding("E306", ("checkpoint_storage", "account_url"), message, hint)
    if has_string and "credential" in storage:
        message = "credential goes with account_url, not with connection_string"
        yield Finding("E306", ("checkpoint_storage", "credential"), message, None, "key")


def _python_environment(config: Config) -> Iterator[Finding]:
    environment = config.get("environment")
    if not isinstance(environment, dict) or environment.get("venv") is None:
        return
    if environment.get("pip"):
        message = "pip adds packages to the Python of the tasks, and venv replaces it"
        yield Finding("E306", ("environment", "pip"), message, "list them in the file of venv.requirements", "key")
    image = environment.get("image")
    images = image.values() if isinstance(image, dict) else [image]
    if any(isinstance(each, str) and each.startswith("venv:") for each in images):
        message = "venv builds an environment, and image names another one"
        yield Finding("E306", ("environment", "image"), message, "give only one of them")


def _profiling(config: Config) -> Iterator[Finding]:
    begin, end = _int(config, "profiling", "begin_on_batch") or 0, _int(config, "profiling", "end_after_batch")
    if end is not None and begin > end:
        yield Finding(
            "E307",
            ("profiling", "end_after_batch"),
            f"profiling ends at batch {end}, before it begins at batch {begin}",
        )


def _log_policies(config: Config) -> Iterator[Finding]:
    policies = config.get("log_policies")
    if isinstance(policies, list) and len(policies) > MAX_LOG_POLICIES:
        message = f"{len(policies)} log policies; each line is compared with at most {MAX_LOG_POLICIES}"
        yield Finding("E205", ("log_policies",), message, "join patterns with |", "key")
    seen: dict[str, int] = {}
    for index, policy in _entries(policies):
        name = policy.get("name")
        path: Path = ("log_policies", index)
        if isinstance(name, str) and name:
            if name in seen:
                yield Finding("E309", (*path, "name"), f'two log policies have the name "{name}"')
            seen[name] = index
            if not policy.get("pattern"):
                yield from _without_pattern(policy, name, path)
        elif not policy.get("pattern") or not policy.get("action"):
            yield Finding("E202", path, 'a log policy needs a "name", or both "pattern" and "action"')


def _without_pattern(policy: dict[str, Any], name: str, path: Path) -> Iterator[Finding]:
    """A named policy without a pattern turns off the default of that name, and does nothing else."""
    if policy.get("action"):
        message = f'log policy "{name}" has no pattern, so its action has no effect'
        yield Finding("W501", (*path, "action"), message, "give its pattern", "key", "warning")
    if name not in _DEFAULT_POLICIES:
        message = f'log policy "{name}" has no pattern, and no default policy has this name to be turned off'
        yield Finding("W501", (*path, "name"), message, "give a pattern, or remove it", "key", "warning")


def _bind_mounts(config: Config) -> Iterator[Finding]:
    seen: set[str] = set()
    for index, mount in _entries(config.get("bind_mounts")):
        target = mount.get("container_path")
        path: Path = ("bind_mounts", index, "container_path")
        if not isinstance(target, str):
            continue
        if PurePosixPath(target) == PurePosixPath("."):
            yield Finding("E206", path, "a mount cannot replace the whole working folder", "mount a folder inside it")
        elif target in seen:
            yield Finding("E309", path, f'two mounts have the container_path "{target}"')
        seen.add(target)


def _hang_timeout(config: Config) -> Iterator[Finding]:
    health, launch = config.get("health"), config.get("launch")
    if not isinstance(health, dict) or not isinstance(launch, dict):
        return
    new, old = health.get("hang_timeout"), launch.get("hang_timeout")
    if new is not None and old is not None and new != old:
        message = f"health.hang_timeout is {new} and launch.hang_timeout, its earlier name, is {old}"
        yield Finding("E302", ("launch", "hang_timeout"), message, "remove launch.hang_timeout")


def _metric_goals(config: Config) -> Iterator[Finding]:
    searcher, goals = config.get("searcher"), config.get("metric_goals")
    if not isinstance(searcher, dict) or not isinstance(goals, dict):
        return
    metric, smaller = searcher.get("metric"), searcher.get("smaller_is_better", True)
    goal = goals.get(metric) if isinstance(metric, str) else None
    if isinstance(goal, str) and isinstance(smaller, bool) and GOALS.get(goal, smaller) is not smaller:
        shown = str(smaller).lower()
        message = (
            f"metric_goals says {goal} for {metric}, but it is the searcher's metric and smaller_is_better is {shown}"
        )
        hint = f"set searcher.smaller_is_better to {str(not smaller).lower()}, or remove this line"
        yield Finding("E302", ("metric_goals", str(metric)), message, hint)


def _sources(config: Config) -> Iterator[Finding]:
    searcher = config.get("searcher")
    if isinstance(searcher, dict) and {"source_trial_id", "source_checkpoint_uuid"} <= searcher.keys():
        message = "source_checkpoint_uuid is ignored because source_trial_id is given too"
        yield Finding("W502", ("searcher", "source_checkpoint_uuid"), message, None, "key", "warning")


def _dead(config: Config) -> Iterator[Finding]:
    for field in DEAD_FIELDS:
        if field in config:
            yield Finding("W501", (field,), f'"{field}" no longer has an effect', "remove it", "key", "warning")
    resources = config.get("resources")
    if isinstance(resources, dict):
        for field in ("agent_label", "native_parallel"):
            if resources.get(field):
                where = ("resources", field)
                yield Finding("W501", where, f'"{field}" no longer has an effect', "remove it", "key", "warning")


def _int(config: Config, section: str, field: str) -> int | None:
    part = config.get(section)
    value = part.get(field) if isinstance(part, dict) else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _entries(value: object) -> Iterator[tuple[int, dict[str, Any]]]:
    for index, entry in enumerate(value if isinstance(value, list) else []):
        if isinstance(entry, dict):
            yield index, entry


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


_RULES = (
    _slots,
    _project,
    _hyperparameters,
    _storage,
    _python_environment,
    _profiling,
    _log_policies,
    _bind_mounts,
    _hang_timeout,
    _metric_goals,
    _sources,
    searcher_rules.check,
    pause.check,
    _dead,
)
