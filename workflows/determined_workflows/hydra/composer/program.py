"""Composes a script with its overrides, and writes what came out as JSON: the program that the package is for."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from determined_workflows.hydra.composer import app, facts, origins, sweep, yaml_places
from determined_workflows.hydra.composer.imports import ImportPath
from determined_workflows.hydra.composer.problems import NOWHERE, Invalid, Problem, of_exception

MAX_PROBLEMS = 20
RUN, MULTIRUN = "RUN", "MULTIRUN"


def main() -> None:
    """Reads the request on standard input, and writes the answer to the file that it names."""
    request = json.loads(sys.stdin.read())
    sys.stdin = open(os.devnull)  # noqa: SIM115  # a script that reads it gets nothing
    answer: dict[str, Any] = {"problems": [], "python": sys.prefix}
    try:
        import hydra

        answer["hydra"] = hydra.__version__
    except ImportError:
        hint = f"install hydra-core for {sys.executable}, or activate the environment of the project"
        answer["problems"] = [Problem("Hydra is not installed", hint).to_json()]
    else:
        try:
            module = request["module"]
            script = module or Path(request["script"]).resolve()
            path = ImportPath()
            path.start(Path.cwd() if module else script.parent)
            app.run(script, request["arguments"], lambda found: answer.update(_compose_or_refuse(found, request)))
            answer |= {"script": sys.modules["__main__"].__file__, "import_folders": path.folders()}
        except Invalid as error:
            answer["problems"] += [each.to_json() for each in error.problems]
    Path(request["answer"]).write_text(json.dumps(answer), encoding="utf-8")


def _compose_or_refuse(found: app.App, request: dict[str, Any]) -> dict[str, Any]:
    from hydra.errors import HydraException
    from omegaconf.errors import OmegaConfBaseException

    try:
        return _compose(found, request)
    except (HydraException, OmegaConfBaseException) as error:
        raise Invalid(of_exception(error, request["arguments"], lambda *_: NOWHERE)) from error


def _compose(found: app.App, request: dict[str, Any]) -> dict[str, Any]:
    hydra, config_name, arguments = _hydra(found, request["arguments"])
    overrides = list(arguments.overrides)
    main = next((each for each in hydra.config_loader.get_sources() if each.provider == "main"), None)
    answer: dict[str, Any] = {
        "config_folder": main.path if main is not None and main.scheme() == "file" else None,
        "config_name": config_name,
    }
    watched = origins.Origins(hydra.config_loader)
    is_sweep, config = _composed_in_its_mode(hydra, config_name, overrides, is_multirun=arguments.multirun)
    by_key = watched.by_key()
    facts.set_job(config, 0)
    answer |= {"mode": MULTIRUN if is_sweep else RUN, **facts.of_launch(config)}
    answer["launcher_keys"] = watched.launcher_keys()
    if not is_sweep:
        answer["jobs"] = [facts.of_job(config, by_key, [])]
        return answer
    answer["sweep_dir"] = facts.text(config, "hydra.sweep.dir")
    jobs = []
    for number, job_overrides in enumerate(sweep.jobs(hydra, config, request["max_jobs"])):
        job_config = _composed_job(hydra, config, job_overrides)
        by_key = watched.by_key()
        facts.set_job(job_config, number, is_sweep=True)
        subfolder = facts.text(job_config, "hydra.sweep.subdir")
        jobs.append(facts.of_job(job_config, by_key, job_overrides) | {"subfolder": subfolder})
    return {**answer, "jobs": jobs}


def _composed_in_its_mode(
    hydra: Any,  # noqa: ANN401  # Hydra's
    config_name: str | None,
    overrides: list[str],
    *,
    is_multirun: bool,
) -> tuple[bool, Any]:
    """Composes as a run or as a multirun: the configuration itself may ask for the latter."""
    if not is_multirun:
        try:
            config = _composed(hydra, config_name, overrides, is_sweep=False)
        except Invalid:  # as a multirun it may be valid
            mode = hydra.get_mode(config_name, overrides)
            if mode is None or mode.name != MULTIRUN:
                raise
        else:
            if config.hydra.mode is None or config.hydra.mode.name == RUN:
                return False, config
    return True, _composed(hydra, config_name, [*overrides, f"hydra.mode={MULTIRUN}"], is_sweep=True)


def _hydra(application: app.App, arguments: list[str]) -> tuple[Any, str | None, Any]:
    from hydra._internal import utils
    from hydra._internal.hydra import Hydra

    args = utils.get_args_parser().parse_args(arguments)
    file, module = utils.detect_calling_file_or_module_from_task_function(application.function)
    config_path = args.config_path if args.config_path is not None else application.config_path
    search_path = utils.create_automatic_config_search_path(file, module, config_path)
    if args.config_dir is not None:
        from hydra.core.config_search_path import SearchPathQuery

        if not os.path.isdir(args.config_dir):
            raise Invalid(Problem(f"the config folder {args.config_dir} does not exist", "see --config-dir"))
        path = f"file://{os.path.abspath(args.config_dir)}"
        search_path.prepend(provider="command-line", path=path, anchor=SearchPathQuery(provider="schema"))
    hydra = Hydra.create_main_hydra2(utils.detect_task_name(file, module), search_path)
    return hydra, args.config_name if args.config_name is not None else application.config_name, args


def _composed(hydra: Any, config_name: str | None, overrides: list[str], *, is_sweep: bool) -> Any:  # noqa: ANN401  # Hydra's
    """Composes; if overrides are wrong, tries again without each of them, so that all of them are reported at once."""
    from hydra.types import RunMode

    problems: list[Problem] = []
    left = list(overrides)
    while True:
        try:
            config = hydra.compose_config(
                config_name=config_name,
                overrides=left,
                run_mode=RunMode.MULTIRUN if is_sweep else RunMode.RUN,
                with_log_configuration=False,
            )
            break
        except Exception as error:  # Hydra's, OmegaConf's, and those of a user's resolvers
            problem = of_exception(error, left, _places(hydra))
            problems.append(problem)
            if problem.override not in left or len(problems) >= MAX_PROBLEMS:
                raise Invalid(*problems) from None
            left.remove(problem.override)
    if problems:
        raise Invalid(*problems)
    return config


def _composed_job(hydra: Any, config: Any, overrides: list[str]) -> Any:  # noqa: ANN401  # Hydra's
    try:
        return hydra.config_loader.load_sweep_config(config, overrides)
    except Exception as error:  # as above
        problem = of_exception(error, overrides, _places(hydra))
        raise Invalid(problem) from None


def _places(hydra: Any) -> Any:  # noqa: ANN401  # Hydra's
    def place(config_path: str, key: str) -> tuple[str | None, int | None, int | None]:
        try:
            result = hydra.config_loader.repository.load_config(config_path)
        except Exception:  # the file itself is what is wrong
            return None, None, None
        file = None if result is None else origins.file_of(result, config_path)
        if file is None:
            return None, None, None
        path = (key,) if key.startswith("defaults:") else tuple(key.split("."))
        found = next((at for start in range(len(path)) if (at := yaml_places.find(file, path[start:]))), None)
        return (file, *found) if found else (file, None, None)

    return place
