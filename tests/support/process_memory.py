"""Reads the memory of a process from /proc."""

from pathlib import Path


def peak_mib(pid: int) -> float:
    """Returns the maximum memory in MiB since the start of the process, or since ``forget_peak``."""
    return _mib(pid, "VmHWM:")


def resident_mib(pid: int) -> float:
    """Returns the current memory in MiB."""
    return _mib(pid, "VmRSS:")


def forget_peak(pid: int) -> float:
    """Resets the peak to the current memory, and returns that in MiB."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")
    return resident_mib(pid)


def _mib(pid: int, name: str) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1]) / 1024
    raise AssertionError(f"process {pid} has no {name}")
