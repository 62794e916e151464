"""A process that was forked after ``core.init()``: reports raise an error, checkpoints can be read."""

import functools
import os
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from determined import core
from determined.core._collectives import over_unix


def in_child(act: Callable[[], object]) -> str:
    """Calls ``act`` in a forked process. Returns the error that it raised, or "done"."""
    reads, writes = os.pipe()
    child = os.fork()
    if not child:
        try:
            act()
            text = "done"
        except BaseException as error:
            text = f"{type(error).__name__}: {error}"
        os.write(writes, text.encode())
        sys.stdout.flush()
        os._exit(0)
    os.close(writes)
    with open(reads, encoding="utf-8") as file:
        text = file.read()
    os.waitpid(child, 0)
    return text


@pytest.mark.timeout(60)
@pytest.mark.filterwarnings("ignore:This process.*multi-threaded:DeprecationWarning")
def test_reports_of_a_forked_process_raise_an_error(master):
    with core.init() as context:
        context.train.report_training_metrics(1, {"loss": 1.0})
        context.preempt.should_preempt()
        calls = {
            "metrics are reported": lambda: context.train.report_training_metrics(2, {"loss": 0.5}),
            "progress and status are reported": lambda: context.train.report_progress(0.5),
            "should_preempt() is asked": context.preempt.should_preempt,
            "the profiler is switched": context.profiler.on,
            "checkpoints are stored": lambda: context.checkpoint.store_path({"steps_completed": 1}).__enter__(),
        }
        for subject, call in calls.items():
            text = in_child(call)
            assert text.startswith(f"RuntimeError: {subject} only in the process that called core.init()"), text
        context.train.report_training_metrics(3, {"loss": 0.5})
    steps = [body["metrics"]["stepsCompleted"] for body in master.bodies("/metrics")]
    assert steps == [1, 3], "the process itself reports as before"


@pytest.mark.timeout(60)
@pytest.mark.filterwarnings("ignore:This process.*multi-threaded:DeprecationWarning")
def test_a_forked_process_reads_checkpoints_and_leaves_the_context_without_closing_it(master):
    with core.init() as context:
        with context.checkpoint.store_path({"steps_completed": 1}) as (path, uuid):
            (path / "w").write_text("w")
        assert in_child(lambda: context.checkpoint.restore_path(uuid).__enter__()) == "done"
        assert in_child(context.close) == "done"
        context.train.report_training_metrics(1, {"loss": 1.0})
    assert len(master.bodies("/metrics")) == 1


def test_collective_operations_of_a_forked_process_raise_an_error(tmp_path):
    with ThreadPoolExecutor(1) as pool:
        joining = pool.submit(over_unix, 1, 2, tmp_path / "socket", b"k")
        chief, worker = over_unix(0, 2, tmp_path / "socket", b"k"), joining.result()
    for member in (chief, worker):
        text = in_child(functools.partial(member.gather, 1))
        assert "collective operations run only in the process that called core.init()" in text
        assert in_child(member.close) == "done"
    worker.gather(2)
    assert chief.gather(1) == [1, 2]
    chief.close()
    worker.close()
