"""A profile of a few steps by torch.profiler, for chrome://tracing or Perfetto."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from torch.profiler import profile, schedule

from mlstm.config_schema import ProfilingConfig


@contextmanager
def profiler(config: ProfilingConfig, run_folder: Path | None) -> Iterator[Callable[[], None]]:
    """Yields what has to be called after each step; it does nothing where no profile is wanted.

    Steps count from the first one of this process. The trace is ``profile/trace.json`` in the folder of the run.
    """
    if config.first_step is None or run_folder is None:
        yield lambda: None
        return
    target = run_folder / "profile" / "trace.json"
    target.parent.mkdir(exist_ok=True)
    window = schedule(wait=config.first_step - 1, warmup=1, active=config.num_steps, repeat=1)
    with profile(schedule=window, on_trace_ready=lambda done: done.export_chrome_trace(str(target))) as running:
        yield running.step
