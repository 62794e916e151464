"""Configurations as YAML documents with the class of each part as a tag: ``!ModelWorker``.

Functions of a dataflow are written as ``module:name``, and found again only in modules that are already imported:
loading a document imports and runs nothing.
"""

import dataclasses
import os
import sys
import types
from typing import TYPE_CHECKING, Any, TypeVar

from determined_workflows.rlhf.task import worker_config
from determined_workflows.rlhf.task.dataflow import Dataflow, MasterWorkerECS
from determined_workflows.rlhf.task.registry import unknown_name

if TYPE_CHECKING:
    import yaml

_Class = TypeVar("_Class", bound=type)
_WORKERS = (
    *(worker_config.Scheduling, worker_config.TasksGroup, worker_config.ExperimentScheduling, worker_config.Dataset),
    *(worker_config.DataLoader, worker_config.Model, worker_config.ModelInterface, worker_config.ModelBackend),
    *(worker_config.RequestReplyStream, worker_config.WorkerInformation, worker_config.DataWorker),
    *(worker_config.ModelWorker, worker_config.MasterWorker),
)
CLASSES: dict[str, type] = {kind.__name__: kind for kind in _WORKERS}
"""The classes that a document may have, by their tags."""


def register_class(kind: _Class) -> _Class:
    """Lets documents have objects of one more class, which is defined above this module."""
    CLASSES[kind.__name__] = kind
    return kind


@dataclasses.dataclass
class _NamedModel:
    """What a dataflow needs to know of a model worker."""

    model_name: str


def dump_config_to_yaml(config: object, file: str | os.PathLike[str]) -> None:
    """Writes a configuration to ``file``.

    Parameters:
        config: an object of a class of ``config``, or a list of them.

    Raises:
        TypeError: something in it cannot be written, as a lambda.

    Example:
        >>> dump_config_to_yaml(experiment.initial_setup(), "config.yaml")
    """
    yaml = _yaml()
    text = yaml.dump(config, Dumper=_dumper(), sort_keys=False, allow_unicode=True)
    with open(file, "w", encoding="utf-8") as stream:
        stream.write(text)


def load_config_from_yaml(file: str | os.PathLike[str]) -> Any:  # noqa: ANN401
    """Returns the configuration that ``dump_config_to_yaml`` wrote.

    Raises:
        ValueError: no such document; the text names file and line.
        ExperimentError: the configuration does not pass the checks.
    """
    yaml = _yaml()
    with open(file, encoding="utf-8") as stream:
        try:
            return yaml.load(stream, Loader=_loader())
        except yaml.YAMLError as error:
            raise ValueError(f"{os.fspath(file)} cannot be read as a configuration: {error}") from None


def _yaml() -> types.ModuleType:
    try:
        import yaml
    except ImportError:
        raise ImportError("configurations as YAML need PyYAML: python3 -m pip install PyYAML") from None
    return yaml


def _dumper() -> Any:  # noqa: ANN401
    class Dumper(_yaml().SafeDumper):  # type: ignore[misc]
        pass

    def part(dumper: "yaml.SafeDumper", config: Any) -> Any:  # noqa: ANN401
        values = {field.name: getattr(config, field.name) for field in dataclasses.fields(config) if field.init}
        return dumper.represent_mapping(f"!{type(config).__name__}", values)

    def dataflow(dumper: "yaml.SafeDumper", flow: Any) -> Any:  # noqa: ANN401
        values = {
            "functions": [_path_of(function) for function in flow.funcs.values()],
            "edges": [list(edge) for edge in flow.edges],
            "models": list(flow.model_names),
        }
        return dumper.represent_mapping(f"!{type(flow).__name__}", values)

    def refuse(dumper: "yaml.SafeDumper", value: Any) -> Any:  # noqa: ANN401
        raise TypeError(
            f"a configuration with {value!r} cannot be written as YAML: use numbers, texts, lists, mappings"
        )

    for kind in CLASSES.values():
        Dumper.add_representer(kind, part)
    Dumper.add_representer(Dataflow, dataflow)
    Dumper.add_representer(MasterWorkerECS, dataflow)
    Dumper.add_representer(tuple, lambda dumper, value: dumper.represent_sequence("!tuple", list(value)))
    Dumper.add_representer(None, refuse)
    return Dumper


def _loader() -> Any:  # noqa: ANN401
    problem = _yaml().constructor.ConstructorError

    class Loader(_yaml().SafeLoader):  # type: ignore[misc]
        pass

    def part(loader: "yaml.SafeLoader", name: str, node: Any) -> Any:  # noqa: ANN401
        if name not in CLASSES:
            raise problem(None, None, unknown_name("class", name, CLASSES), node.start_mark)
        try:
            values: dict[Any, Any] = loader.construct_mapping(node, deep=True)
            return CLASSES[name](**values)
        except TypeError as error:
            raise problem(None, None, f"{name}: {error}", node.start_mark) from None

    def dataflow(loader: "yaml.SafeLoader", node: Any) -> Any:  # noqa: ANN401
        values: dict[Any, Any] = loader.construct_mapping(node, deep=True)
        try:
            ecs = MasterWorkerECS([_NamedModel(name) for name in values["models"]])
            for path in values["functions"]:
                ecs.add_system(_function_at(path))
            ecs.edges += [(str(earlier), str(later)) for earlier, later in values["edges"]]
            return ecs.build() if node.tag == f"!{Dataflow.__name__}" else ecs
        except (KeyError, TypeError, ValueError) as error:
            text = f"a dataflow has functions, edges and models: {error}"
            raise problem(None, None, text, node.start_mark) from None

    Loader.add_multi_constructor("!", part)
    Loader.add_constructor(f"!{Dataflow.__name__}", dataflow)
    Loader.add_constructor(f"!{MasterWorkerECS.__name__}", dataflow)
    Loader.add_constructor("!tuple", lambda loader, node: tuple(loader.construct_sequence(node, deep=True)))
    return Loader


def _path_of(function: Any) -> str:  # noqa: ANN401
    path = f"{getattr(function, '__module__', '')}:{getattr(function, '__qualname__', '')}"
    try:
        is_found = _function_at(path) is function
    except ValueError:
        is_found = False
    if not is_found:
        raise TypeError(f"{function!r} cannot be written as YAML: a function of a dataflow is at the top of a module")
    return path


def _function_at(path: str) -> Any:  # noqa: ANN401
    module, _, name = str(path).partition(":")
    found = getattr(sys.modules.get(module), name, None)
    if not isinstance(found, types.FunctionType):
        raise ValueError(f"there is no function {path}: import {module or 'its module'} first")
    return found
