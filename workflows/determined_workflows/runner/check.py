"""``check``: prints the tasks of a grid with their commands, and runs and writes nothing."""

import sys
import time

from determined_workflows.runner import console, grid, params_file
from determined_workflows.runner.run import TIME_FORMAT, Options


def check(options: Options) -> None:
    """Prints orphan parameters, counts, and the commands of each task. Raises ParamsFileError if the grid is wrong."""
    file = params_file.read(options.yaml)
    tasks = grid.tasks(file, options.output, options.selection, has_subfolders=options.has_subfolders)
    now = time.strftime(TIME_FORMAT)
    print(console.orphans(grid.orphans(file, tasks)))
    print(f"Tasks: {len(tasks)}, commands to run: {sum(len(task.templates) for task in tasks)}")
    for task in tasks:
        print(console.on_one_line(str(options.output / task.name)))
        for template in task.templates:
            print(f"    {template.name}: {console.on_one_line(task.command(template, now))}")
    workers = len(options.resources or file.resources)
    print(f"{options.yaml} is valid: {len(tasks)} tasks for {workers} worker{'s' * (workers != 1)}", file=sys.stderr)
