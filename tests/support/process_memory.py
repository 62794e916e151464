"""The memory of a process, as the kernel counts it."""

from pathlib import Path


def peak_mib(pid: int) -> float:
    """The most memory that the process held since its start, or since ``forget_peak``."""
    return _mib(pid, "VmHWM:")


def resident_mib(pid: int) -> float:
    """The memory that the process holds now."""
    return _mib(pid, "VmRSS:")


def forget_peak(pid: int) -> float:
    """Makes the peak what the process holds now, and returns that."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")
    return resident_mib(pid)


def _mib(pid: int, name: str) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1]) / 1024
    raise AssertionError(f"process {pid} has no {name}")
