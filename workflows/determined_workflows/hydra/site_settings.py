"""What ``SITE.yaml`` gives to the launcher that submits to Slurm, as overrides of Hydra.

The project wins: what its configuration or an override sets is left as it is. Defaults of the launcher are replaced.
"""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from determined.errors import ConfigError
from determined_workflows.hydra import slurm_options
from determined_workflows.hydra.composer.origins import OVERRIDE
from determined_workflows.hydra.composition import Composition
from determined_workflows.hydra.override_grammar import quoted
from determined_workflows.site_profile import SiteProfile

REFUSED = {
    "array": "the launcher makes one of a multirun; array_parallelism limits the jobs at a time",
    "chdir": "jobs start in the working folder of the project",
    "clusters": "log in to that cluster",
    "error": "the launcher reads the output of its jobs in submitit_folder",
    "output": "the launcher reads the output of its jobs in submitit_folder",
    "parsable": "the launcher reads what sbatch prints",
    "test-only": "use --dry-run",
    "wait": "det hydra waits for the jobs",
    "wrap": "the launcher writes the script of its jobs",
}
"""Options that would change what the launcher relies on, and what to do instead."""
_OF_LAUNCHER = ("open-mode", "signal")
"""Options that the launcher always sets: it needs them to queue a job again at its time limit."""
_WHOLE_NUMBERS = frozenset(
    ("cpus_per_gpu", "cpus_per_task", "gpus_per_node", "gpus_per_task", "nodes", "tasks_per_node")
)
_OF_EVERY_LAUNCHER = frozenset(("cpus_per_task", "gpus_per_node", "name", "nodes", "tasks_per_node", "timeout_min"))
"""Keys that every version of the launcher has, although a project's own configuration of it may leave them out."""
_OPTION_OF_KEY = {key: option for option, key in slurm_options.OWN_KEYS.items()} | {
    "mem_gb": "mem",
    "timeout_min": "time",
}


@dataclass(frozen=True)
class SiteSettings:
    """The overrides for the launcher. ``summary`` says in one line what they are; None if the site gives nothing."""

    overrides: list[str]
    summary: str | None = None


def of(site: SiteProfile, composed: Composition) -> SiteSettings:
    """Returns what a site gives to the launcher of a composition.

    Raises ConfigError with file, line and column for an option that the launcher cannot take.
    """
    overrides = _setup(site, composed)
    others: dict[str, str] = {}
    taken, left = [], []
    project = _options_of(composed)
    for option, value in site.sbatch.items():
        _refuse(site, option, value)
        same = next((each for each in slurm_options.ALTERNATIVES if option in each), frozenset((option,)))
        if project & same:
            left += sorted(project & same)
            continue
        taken.append(option if value is None else f"{option}={value}")
        setting = _key(option, value, composed.launcher)
        if setting is None:
            others[option.replace("-", "_")] = "true" if value is None else quoted(value)
        else:
            overrides.append(setting)
    if others:
        inside = ",".join(f"{key}:{value}" for key, value in others.items())
        overrides.append(f"++hydra.launcher.additional_parameters={{{inside}}}")
    return SiteSettings(overrides, _summary(site, taken, left))


def _setup(site: SiteProfile, found: Composition) -> list[str]:
    """Returns the override for ``setup``: lines and variables of the site, then the lines of the project."""
    if not (site.setup or site.environment):
        return []
    own: object = found.launcher_setup
    if own is None:
        own = found.launcher.get("setup") or []
    if not isinstance(own, list):
        raise ConfigError(
            f"hydra.launcher.setup is {own}, which cannot be resolved before the jobs start; write it as a list, so "
            f"that the lines of {site.source} can come before it"
        )
    lines = [f"# From {site.source}.".replace("${", "$ {"), *_lines(site)]
    if own:
        lines += ["# From the project.", *map(str, own)]
    return [f"++hydra.launcher.setup=[{','.join(map(quoted, lines))}]"]


def _lines(site: SiteProfile) -> Iterator[str]:
    lines = [line for text in site.setup for line in text.splitlines() or [""]]
    if any("${" in line for line in lines):
        # Together, since a statement may have several lines.
        yield "eval " + _ansi_quoted("\n".join(lines))
    else:
        yield from lines
    for name, value in site.environment.items():
        yield f"export {name}={_ansi_quoted(value) if '${' in value else shlex.quote(value)}"


def _ansi_quoted(text: str) -> str:
    r"""Returns a text as a word of bash without ``${``, which Hydra would take for a reference, however it is escaped.

    >>> print(_ansi_quoted("a='${B}'"))
    $'a=\'$\x7bB}\''
    """
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n").replace("${", "$\\x7b")
    return f"$'{escaped}'"


def _options_of(found: Composition) -> set[str]:
    """Returns the options that the project sets, and those that the launcher always sets."""
    options: set[str] = set(_OF_LAUNCHER)
    for key, origin in found.launcher_keys.items():
        # A key without a value in a file asks for nothing; one on the command line asks for no value.
        if key in _OPTION_OF_KEY and (origin == OVERRIDE or found.launcher.get(key) is not None):
            options.add(_OPTION_OF_KEY[key])
    additional = found.launcher.get("additional_parameters")
    return options | {str(name).replace("_", "-") for name in additional or () if isinstance(additional, Mapping)}


def _key(option: str, value: str | None, launcher: Mapping[str, object]) -> str | None:
    """Returns the override of the launcher's own key for an option; None if it has none for this value."""
    key = "timeout_min" if option == "time" else slurm_options.OWN_KEYS.get(option)
    if key is None or value is None or (key not in launcher and key not in _OF_EVERY_LAUNCHER):
        return None
    prefix = "" if key in launcher else "++"
    if key in _WHOLE_NUMBERS or key == "timeout_min":
        number = slurm_options.minutes(value) if key == "timeout_min" else _whole_number(value)
        return f"{prefix}hydra.launcher.{key}={number}" if number else None
    return f"{prefix}hydra.launcher.{key}={quoted(value)}"


def _whole_number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() else None


def _refuse(site: SiteProfile, option: str, value: str | None) -> None:
    if option in REFUSED:
        raise site.option_error(option, f"--{option} cannot be set for det hydra: {REFUSED[option]}")
    if value is not None and "${" in value:
        raise site.option_error(option, f"--{option}={value}: sbatch replaces no variables; write the value itself")


def _summary(site: SiteProfile, taken: Sequence[str], left: Sequence[str]) -> str | None:
    count = len(site.setup)
    lines = [f"{count} set-up line{'' if count == 1 else 's'}"] if count else []
    given = [*lines, *site.environment, *taken]
    if not given and not left:
        return None
    kept = f"; {', '.join(dict.fromkeys(left))}: as the project or its launcher says" if left else ""
    return f"{site.source} gives the jobs of Slurm {', '.join(given) or 'nothing'}{kept}"
