"""Reads hardware faults of NVIDIA GPUs (Xid) from the kernel's log, as far as the agent may read it."""

import errno
import os
import re
from pathlib import Path

KMSG = Path("/dev/kmsg")
HARDWARE_FAULTS = frozenset({48, 61, 62, 64, 74, 79, 95, 119, 120})
"""Numbers that mean a broken GPU; others, such as 13 and 31, are faults of the program that ran on it."""
_XID = re.compile(r"NVRM: Xid \(PCI:([0-9a-fA-F:]{6,20})(?:\.\d)?\): (\d{1,5}), ?([^\n]{0,200})")
_MAX_LINES = 10_000


class KernelLog:
    """The lines that the kernel writes from now on; none if this user may not read them."""

    def __init__(self, path: Path = KMSG) -> None:
        self._file: int | None = None
        try:
            self._file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            os.lseek(self._file, 0, os.SEEK_END)
        except OSError:
            self.close()

    def faults(self) -> dict[str, str]:
        """Returns new hardware faults: address on the bus, without the function, → a sentence."""
        found: dict[str, str] = {}
        for line in self._lines():
            if fault := parse_xid(line):
                found[fault[0]] = fault[1]
        return found

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _lines(self) -> list[str]:
        lines: list[str] = []
        while self._file is not None and len(lines) < _MAX_LINES:
            try:
                data = os.read(self._file, 8192)
            except OSError as problem:
                if problem.errno == errno.EPIPE:
                    continue  # the kernel has overwritten a line before it was read
                break
            if not data:
                break
            lines += data.decode(errors="replace").splitlines()
        return lines


def parse_xid(line: str) -> tuple[str, str] | None:
    """Returns the address and the sentence of a hardware fault, or None for any other line.

    >>> parse_xid("NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus.")
    ('0000:3b:00', 'the driver reported hardware fault Xid 79: pid=1, GPU has fallen off the bus.')
    >>> parse_xid("NVRM: Xid (PCI:0000:3b:00): 31, pid=1, MMU Fault")
    """
    found = _XID.search(line)
    if found is None or int(found[2]) not in HARDWARE_FAULTS:
        return None
    said = f": {found[3].strip()}" if found[3].strip() else ""
    return found[1].lower(), f"the driver reported hardware fault Xid {found[2]}{said}"
