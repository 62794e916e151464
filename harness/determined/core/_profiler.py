"""Samples the machine while the trial runs and reports averages as metric groups."""

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from determined.core._own_process import OwnProcess
from determined.core._train import now

SHORTEST_INTERVAL = 0.1


class ProfilerContext:
    """Samples processor use and free memory of the machine: ``core_context.profiler``. One worker per machine samples.

    :func:`determined.core.init` makes it.

    >>> core_context.profiler.on()  # doctest: +SKIP
    """

    def __init__(self, put: Callable[[dict[str, Any]], object], *, trial_id: int, run_id: int, collects: bool) -> None:
        self._put = put
        self._trial_id = trial_id
        self._run_id = run_id
        self._collects = collects
        self._off = threading.Event()
        self._process = OwnProcess()
        self._thread: threading.Thread | None = None

    def on(self, sampling_interval: float = 1.0, samples_per_report: int = 10) -> None:
        """Starts to sample and reports averages; ``off`` reports the average of the remaining samples.

        Args:
            sampling_interval: seconds between samples, at least 0.1.
            samples_per_report: number of samples that are averaged for one report.

        Raises:
            ValueError: an argument is too small.
        """
        if sampling_interval < SHORTEST_INTERVAL:
            raise ValueError(f"sampling_interval must be at least {SHORTEST_INTERVAL} s")
        if samples_per_report < 1:
            raise ValueError("samples_per_report must be at least 1")
        self._process.require("the profiler is switched")
        if not self._collects or self._thread is not None:
            return
        self._off.clear()
        self._thread = threading.Thread(
            target=self._run, args=(sampling_interval, samples_per_report), name="determined-profiler", daemon=True
        )
        self._thread.start()

    def off(self) -> None:
        """Stops sampling."""
        self._off.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def close(self) -> None:
        """Stops sampling, like :meth:`off`."""
        self.off()

    def _run(self, interval: float, count: int) -> None:
        before = _processor_times()
        samples: list[tuple[float, float]] = []
        while not self._off.wait(interval):
            after = _processor_times()
            total = sum(after) - sum(before)
            idle = sum(after[3:5]) - sum(before[3:5])  # what waits for disks uses no processor
            samples.append((100.0 * (1 - idle / total) if total else 0.0, _free_gigabytes()))
            before = after
            if len(samples) == count:
                self._report_average(samples)
                samples = []
        if samples:
            self._report_average(samples)

    def _report_average(self, samples: list[tuple[float, float]]) -> None:
        self._report("cpu", {"cpu_util_simple": sum(item[0] for item in samples) / len(samples)})
        self._report("memory", {"memory_free": sum(item[1] for item in samples) / len(samples)})

    def _report(self, group: str, values: dict[str, float]) -> None:
        metrics = {
            "trialId": self._trial_id,
            "trialRunId": self._run_id,
            "reportTime": now(),
            "metrics": {"avgMetrics": values},
        }
        self._put({"metrics": metrics, "group": group})


class DummyProfilerContext(ProfilerContext):
    """The profiler context off the cluster: samples nothing."""

    def __init__(self) -> None:
        super().__init__(lambda _: None, trial_id=0, run_id=0, collects=False)


def _processor_times() -> list[int]:
    with open("/proc/stat", encoding="ascii") as file:
        return [int(value) for value in file.readline().split()[1:9]]


def _free_gigabytes() -> float:
    text = Path("/proc/meminfo").read_text(encoding="ascii")
    found = next((line for line in text.splitlines() if line.startswith("MemAvailable")), None)
    return int(found.split()[1]) / 1e6 if found else os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 1e9
