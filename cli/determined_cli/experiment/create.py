"""``det experiment create`` and ``fork``: check the configuration, upload the context, create, follow."""

from __future__ import annotations

import sys
from argparse import Namespace
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from determined.client import experiments, submissions
from determined.client.session import Session
from determined.errors import ApiError, BadRequest, ConfigError, DeterminedError, NotImplementedYet
from determined_cli import connection
from determined_cli.experiment import checked_configs
from determined_cli.terminal.messages import say

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from determined.config import CheckResult
    from determined.config.diagnostics import Diagnostic
    from determined.config.overrides import Overridden
    from determined.context import ContextArchive

STAND_IN = {"checkpoint_storage": {"type": "shared_fs", "host_path": "/"}}
"""A placeholder: the master fills in its own storage, so a configuration without one is not incomplete."""
NO_PROJECT = "W507"
"""The warning about a project that does not exist; only the master knows its projects."""


class Usage(DeterminedError):
    """Flags exclude each other."""

    exit_code = 2


def create(args: Namespace) -> int:
    """Creates an experiment. Returns 4 for an invalid configuration or context, else the exit code of following it."""
    _check_usage(args)
    written = config_text(args.config_file, args.config)
    name, text = written.name, written.text
    if args.local:
        from determined.local import run_local

        return run_local(
            text,
            name=name,
            context=Path(args.context),
            includes=[Path(each) for each in args.include],
            test_mode=args.test_mode,
            python=args.python,
            slots=args.slots,
            follow_links=args.follow_links,
            render=written.render,
        )
    checked = None
    if args.test_mode or not checked_configs.is_known(text):
        checked = checked_config(written)
    from determined.context import KnownFolders, pack

    includes = [Path(each) for each in args.include]
    packed = pack(Path(args.context), includes, follow_links=args.follow_links, known=KnownFolders.of_user())
    if args.no_code:
        packed = packed.without_code()
    for note in packed.notes:
        say(note)
    session = connection.connect(args.options)
    body = {"config": text, "configName": name, "activate": not args.paused}
    if args.project_id is not None:
        body["projectId"] = args.project_id
    if checked is not None:
        _warn_of_cluster(session, written, checked, has_project=args.project_id is not None)
    if args.test_mode and checked is not None:
        return _test(session, body, written, checked, packed)
    return _submit(session, body, written, args, packed)


def _check_usage(args: Namespace) -> None:
    """Raises what is wrong with the flags, before anything is read."""
    if args.template:
        raise NotImplementedYet("templates are not supported yet; remove --template")
    if args.test_mode and args.paused:
        raise Usage("--test-mode and --paused exclude each other")
    if args.slots is not None and not args.local:
        raise Usage("--slots needs --local; on a cluster set resources.slots_per_trial")
    if args.publish and (args.local or args.test_mode):
        raise Usage("--publish needs a trial on a cluster; --local and --test-mode exclude it")
    _check_ports(args.publish)
    if args.context is None:
        raise Usage("missing context folder: det experiment create CONFIG CONTEXT")


def _check_ports(published: Sequence[str]) -> None:
    """Raises BadRequest before anything is created."""
    if published:
        from determined_cli.streams import port_forward

        for text in published:
            port_forward.ports_of(text)


def _test(
    session: Session, body: dict[str, Any], written: Configuration, checked: CheckResult, packed: ContextArchive
) -> int:
    from determined_cli.experiment import test_mode

    try:
        experiment_id = test_mode.submit(session, body, packed, checked)
    except BadRequest as error:
        raise as_config_error(error, written) from None
    print(f"Created experiment {experiment_id}", flush=True)
    return test_mode.watch(session, experiment_id)


def fork(args: Namespace) -> int:
    """Creates an experiment from the code of another, with its configuration or a given one."""
    session = connection.connect(args.options)
    if args.config_file:
        written = config_text(args.config_file, args.config)
    else:
        text = str(experiments.get(session, args.experiment_id)["originalConfig"])
        written = changed(f"experiment {args.experiment_id}", text, args.config)
    _warn_of_cluster(session, written, checked_config(written))
    body = {
        "config": written.text,
        "configName": written.name,
        "activate": not args.paused,
        "parentId": args.experiment_id,
    }
    return _submit(session, body, written, args)


def _submit(
    session: Session,
    body: dict[str, Any],
    written: Configuration,
    args: Namespace,
    packed: ContextArchive | None = None,
) -> int:
    try:
        answer = submissions.create(session, body, packed)
    except BadRequest as error:
        raise as_config_error(error, written) from None
    return report_created(session, answer, is_followed=args.follow or bool(args.publish), published=args.publish)


def report_created(
    session: Session, answer: Mapping[str, Any], *, is_followed: bool, published: Sequence[str] = ()
) -> int:
    """Prints the id of a new experiment, from the master's ``answer``. Returns 0, or the exit code of following it."""
    experiment_id = int(answer["experiment"]["id"])
    if "LAUNCH_WARNING_CURRENT_SLOTS_EXCEEDED" in (answer.get("warnings") or []):
        say("warning: the experiment needs more slots than the cluster has; it waits until enough are added")
    print(f"Created experiment {experiment_id}", flush=True)
    if not is_followed:
        return 0
    from determined_cli.experiment.follow import follow

    return follow(session, experiment_id, published)


@dataclass(frozen=True)
class Configuration:
    """The text that is submitted. ``overridden``: how it came from a file and ``--config``; None without changes."""

    name: str
    text: str
    overridden: Overridden | None = None

    def render(self, diagnostics: Sequence[Diagnostic]) -> str:
        """Returns diagnostics of the text as text for people."""
        if self.overridden is not None:
            return self.overridden.render(self.name, diagnostics)
        from determined.config.diagnostics import render

        return render(self.name, self.text.split("\n"), diagnostics)


def config_text(config_file: str, changes: list[str]) -> Configuration:
    if config_file == "-":
        name, data = "<stdin>", sys.stdin.buffer.read()
    else:
        path = Path(config_file)
        try:
            name, data = config_file, path.read_bytes()
        except OSError as error:
            raise ConfigError(f"{config_file}: {(error.strerror or str(error)).lower()}") from None
    # A byte that is not UTF-8 becomes a lone surrogate, which the check reports with its position.
    return changed(name, data.decode("utf-8", "surrogateescape").removeprefix("\ufeff"), changes)


def changed(name: str, text: str, changes: list[str]) -> Configuration:
    if not changes:
        return Configuration(name, text)
    from determined.config.overrides import override

    overridden = override(text, changes)
    return Configuration(name, overridden.text, overridden)


def checked_config(written: Configuration) -> CheckResult:
    """Checks the configuration and prints what it found. Raises ConfigError if there are errors.

    The only check of a creation in this process: what follows takes its result.
    """
    from determined.config import check

    # What only containers support depends on the cluster's agents, and the master is asked about it.
    checked = check(written.text, name=written.name, defaults=[STAND_IN], has_containers=True)
    if checked.diagnostics:
        say(written.render(checked.diagnostics))
    if not checked.ok:
        errors = sum(each.severity == "error" for each in checked.diagnostics)
        raise ConfigError(f"{written.name} is invalid: {errors} error{'s' if errors > 1 else ''}")
    return checked


def _warn_of_cluster(
    session: Session, written: Configuration, checked: CheckResult, *, has_project: bool = False
) -> None:
    """Prints the warnings about what this cluster's agents do not support, and about a project that it does not have.
    Remembers a configuration that no cluster would warn about. ``has_project``: the command line names one instead."""
    from determined.config.diagnostics import Diagnostic

    names_project = not has_project and checked.config is not None and bool(checked.config.project)
    if not checked.without_containers and not names_project:
        if not checked.diagnostics:
            checked_configs.remember(written.text)
        return
    answer = session.post("/detent/config/check", {"config": written.text})["diagnostics"]
    warnings = [Diagnostic(**row) for row in answer if row["severity"] == "warning"]
    news = [
        warning
        for warning in warnings
        if warning in checked.without_containers or (names_project and warning.code == NO_PROJECT)
    ]
    if news:
        say(written.render(news))


def as_config_error(error: ApiError, written: Configuration) -> DeterminedError:
    """Converts the master's diagnostics to those of the local check."""
    from determined.config.diagnostics import Diagnostic

    rows = error.answer.get("diagnostics") or (error.answer.get("error") or {}).get("diagnostics")
    if not rows:
        return error
    fields = ("severity", "code", "message", "path", "line", "column", "hint")
    diagnostics = [Diagnostic(**{field: each.get(field) for field in fields}) for each in rows]
    say(written.render(diagnostics))
    return ConfigError(f"{written.name} is invalid: the master found {len(rows)} problem{'s' if len(rows) > 1 else ''}")
