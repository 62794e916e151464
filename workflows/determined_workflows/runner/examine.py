"""Collects the results of a grid: applies your parsers to the folder of each task, and prints a table.

>>> def parse(path, experiment, caches):
...     log = latest_log("test", path)
...     experiment.metric["bleu"] = float(log.read_text().split()[-1])
>>> examiner = Examiner()
>>> examiner.add(parse)
>>> examiner.exam(output="output", regex=".*newnorm.*")
>>> examiner.table()
<BLANKLINE>
"""

import importlib
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from determined_workflows.runner.task_files import read_mapping

Parser = Callable[[Path, "Experiment", dict[Any, Any]], object]


class Experiment(NamedTuple):
    """A task: ``cache`` and ``metric`` are filled by parsers, ``param`` is the content of its file ``param``."""

    cache: dict[str, Any]
    metric: dict[str, Any]
    param: dict[str, Any]


class Examiner:
    """A container of parsers and of what they found. ``experiments`` maps folder names, ``caches`` is yours."""

    def __init__(self) -> None:
        self.exams: list[Parser] = []
        self.caches: dict[Any, Any] = {}
        self.experiments: dict[str, Experiment] = {}

    def add(self, func: Parser) -> None:
        """Adds a parser, which is called with the folder of a task, its Experiment and the common dictionary."""
        self.exams.append(func)

    def reset(self) -> None:
        """Forgets results and caches, and keeps the parsers."""
        self.caches.clear()
        self.experiments.clear()

    def exam(self, output: str | Path = "output", regex: str = ".*", verbose: bool = False, workers: int = -1) -> None:
        """Applies all parsers to the folders below ``output`` whose names match ``regex``.

        With ``workers`` above 1, that many threads parse several folders at once. ``verbose`` prints each folder. A
        parser that raises an exception is reported with its folder; the others continue.
        """

        def examine(path: Path) -> None:
            if verbose:
                print(path)
            for each in self.exams:
                try:
                    each(path, self.experiments[path.name], self.caches)
                except Exception as error:
                    name = getattr(each, "__name__", "a parser")
                    print(f"{path}: {name}: {type(error).__name__}: {error}", file=sys.stderr)

        paths = match_output(output, regex)
        for path in paths:
            self.experiments[path.name] = Experiment({}, {}, load_params(path))
        if workers > 1:
            with ThreadPoolExecutor(workers) as pool:
                list(pool.map(examine, paths))
        else:
            for path in paths:
                examine(path)

    def table(self, concise: bool = True, print_tsv: bool = True, *, markdown: bool = False) -> Any:  # noqa: ANN401  # a DataFrame
        """Prints parameters and metrics as tab-separated values, or as Markdown, one row for each task.

        ``concise`` leaves out parameters that are the same everywhere. Names that begin with ``_`` are hidden. Returns
        a DataFrame if pandas is installed, else None.
        """
        columns, rows = self._rows(concise)
        if markdown:
            print(_markdown(columns, rows))
        elif print_tsv:
            print(_tsv(columns, rows))
        try:
            pandas = importlib.import_module("pandas")
        except ImportError:
            return None
        return pandas.DataFrame(rows, columns=columns)

    def _rows(self, concise: bool) -> tuple[list[str], list[list[object]]]:
        experiments = list(self.experiments.values())
        params = _names(each.param for each in experiments)
        if concise and len(experiments) > 1:
            params = [name for name in params if len({repr(each.param.get(name)) for each in experiments}) > 1]
        metrics = _names(each.metric for each in experiments)
        rows: list[list[object]] = [
            [*(each.param.get(name) for name in params), *(each.metric.get(name) for name in metrics)]
            for each in experiments
        ]
        return [*params, *metrics], rows


def match_output(output: str | Path, regex: str = ".*") -> list[Path]:
    """Returns the folders of tasks below ``output`` whose names match ``regex`` from their beginning, sorted by name.

    >>> match_output("output", ".*norm.*")
    []
    """
    pattern = re.compile(regex)
    folders = [path.parent for path in Path(output).glob("*/param")]
    return sorted(folder for folder in folders if pattern.match(folder.name))


def load_params(path: str | Path) -> dict[str, Any]:
    """Returns the content of ``param`` in the folder of a task; empty if it is missing.

    >>> load_params("output/Norm_new")
    {}
    """
    return read_mapping(Path(path) / "param")


def latest_log(command: str, path: str | Path, index: int = -1) -> Path | None:
    """Returns the newest log of a command in a folder, or None. ``index`` -2 is the one before.

    >>> latest_log("train", "output/Norm_new") is None
    True
    """
    pattern = re.compile(rf"log\.{re.escape(command)}\.\d{{8}}\.\d{{6}}")
    folder = Path(path)
    found = sorted(each for each in folder.glob("log.*") if pattern.match(each.name)) if folder.is_dir() else []
    try:
        return found[index]
    except IndexError:
        return None


def _names(mappings: Iterable[Mapping[str, object]]) -> list[str]:
    return list(dict.fromkeys(name for each in mappings for name in each if not str(name).startswith("_")))


def _tsv(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    return "\n".join("\t".join(_cell(value) for value in row) for row in [columns, *rows])


def _markdown(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(_cell(value).replace("|", "\\|") for value in row) + " |" for row in lines)


def _cell(value: object) -> str:
    """Returns a value on one line without tabs."""
    return "" if value is None else " ".join(str(value).split())
