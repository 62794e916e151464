"""The example that ``det runner init`` writes."""

from pathlib import Path

from determined_workflows.runner.errors import ConflictError

EXAMPLE = """\
# A grid of command pipelines; `det runner run` executes it.
---
# The commands of each task, in their order. A task stops at its first command that fails.
#   {name}   the value of a parameter
#   [name]   --name VALUE; for true and false --name or nothing
#   {_output} {_name} {_time}   the folder and the name of the task, and the time of the run
template:
  train: >
    echo "training with lr {lr} and {norm}" [amp]
      > {_output}/model.txt
  test: cat {_output}/model.txt

# The values of parameters that the choices below do not set.
default:
  lr: 0.1
  norm: batch
  amp: false

# One worker for each entry, with CUDA_VISIBLE_DEVICES set to it. "0,1" is a worker with two GPUs;
# an entry that is repeated runs several tasks on one GPU.
resource: [0, 1]

# A name for values that change together: choices say `size: [small, large]`, commands {layers} and {width}.
# alias:
#   size:
#     small: {layers: 2, width: 64}
#     large: {layers: 8, width: 512}

---
# Each further document is a grid: all combinations of its values. `_title` names it for `det runner run -t`,
# `_cmd` selects commands.
# _title: norms
# _cmd: [train]
norm: [batch, layer]
lr: [0.1, 0.05]
"""


def init(path: Path) -> None:
    """Writes the example to ``path``. Raises ConflictError if the file exists, and OSError."""
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(EXAMPLE)
    except FileExistsError:
        raise ConflictError(f"{path} exists already; it is left as it is") from None
