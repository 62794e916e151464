"""Queue of metric reports on disk: reports that the master has not accepted yet, one JSON object per line, in order.

A report is written before the reporting call returns. It therefore survives ``kill -9`` of the process. Nothing is
synced: a crash of the whole machine may lose the last lines.
"""

import contextlib
import errno
import fcntl
import json
import logging
import os
import threading
from pathlib import Path
from typing import Any, NamedTuple

logger = logging.getLogger(__name__)

FILE_NAME = "metrics.jsonl"
SENT_NAME = "metrics.sent"
"""Holds the offset in the queue file up to which the master has accepted the reports."""


_open_here: set[Path] = set()
"""Queue files that this process has open; its own locks do not stop it."""


class SpooledReport(NamedTuple):
    """One report. ``size`` is the length of its line in bytes, ``end`` the offset behind the line in the file, None if
    the report is kept in memory only."""

    body: dict[str, Any]
    size: int
    end: int | None


class Spool:
    """Queue file of one process. A second process of the same container that runs at the same time has no file.

    Without a folder, or if the folder cannot be written, reports are kept in memory only.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._file: int | None = None
        self._mark: int | None = None
        self._end = 0
        self._sent = 0

    def open(self) -> list[SpooledReport]:
        """Opens the queue and returns, in order, the reports that an earlier process of this container left."""
        if self._folder is None:
            return []
        if self._folder in _open_here:
            self._memory_only(BlockingIOError(errno.EAGAIN, f"{FILE_NAME} is in use by another context"))
            return []
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            file = os.open(self._folder / FILE_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            self._memory_only(error)
            return []
        try:
            # a lock of this kind ends with the process; a child made by fork does not inherit it
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            mark = os.open(self._folder / SENT_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            os.close(file)
            self._memory_only(error)
            return []
        self._file, self._mark = file, mark
        _open_here.add(self._folder)
        return self._read(file, mark)

    def append(self, body: dict[str, Any]) -> SpooledReport:
        """Adds a report. Raises TypeError or ValueError if it has no JSON form."""
        line = json.dumps(body, allow_nan=False).encode() + b"\n"
        with self._lock:
            if self._file is None:
                return SpooledReport(body, len(line), None)
            try:
                _write_all(self._file, line, self._end)
            except OSError as error:
                self._give_up(error)
                return SpooledReport(body, len(line), None)
            self._end += len(line)
            return SpooledReport(body, len(line), self._end)

    def remove(self, report: SpooledReport) -> None:
        """Removes a report and all before it. The file is emptied when nothing is left in it."""
        with self._lock:
            if self._file is None or self._mark is None or report.end is None:
                return
            self._sent = report.end
            try:
                if self._sent == self._end:
                    # truncates the file first: an offset beyond the end of the file counts as 0
                    os.ftruncate(self._file, 0)
                    self._sent = self._end = 0
                os.pwrite(self._mark, b"%020d" % self._sent, 0)
            except OSError as error:
                self._give_up(error)

    def close(self) -> None:
        """Closes the files, and removes them if all reports were accepted."""
        with self._lock:
            if self._folder is not None and self._file is not None and self._sent == self._end:
                for name in (FILE_NAME, SENT_NAME):
                    (self._folder / name).unlink(missing_ok=True)
            self._close()

    def _read(self, file: int, mark: int) -> list[SpooledReport]:
        size = os.fstat(file).st_size
        data = os.pread(file, size, 0) if size else b""
        whole = data[: data.rfind(b"\n") + 1]  # a process that was killed while it wrote leaves half a line
        self._end = len(whole)
        if self._end != size:
            os.ftruncate(file, self._end)
        sent = os.pread(mark, 20, 0)
        self._sent = int(sent) if sent.isdigit() and int(sent) <= self._end else 0
        if sent != b"%020d" % self._sent:
            # A kill between truncation and mark leaves an offset that later reports would reach again.
            os.pwrite(mark, b"%020d" % self._sent, 0)
        reports: list[SpooledReport] = []
        at = self._sent
        for line in whole[at:].splitlines(keepends=True):
            at += len(line)
            try:
                body = json.loads(line)
            except ValueError:
                logger.warning("cannot read a metric report on the disk; it is dropped: %r", line[:200])
                continue
            reports.append(SpooledReport(body, len(line), at))
        return reports

    def _give_up(self, error: OSError) -> None:
        """Keeps further reports in memory. Complete lines stay on disk; a partial last line is removed."""
        self._memory_only(error)
        if self._file is not None:
            with contextlib.suppress(OSError):
                os.ftruncate(self._file, self._end)
        self._close()

    def _close(self) -> None:
        for descriptor in (self._file, self._mark):
            if descriptor is not None:
                os.close(descriptor)
        if self._folder is not None and self._file is not None:
            _open_here.discard(self._folder)
        self._file = self._mark = None

    def _memory_only(self, error: OSError) -> None:
        logger.warning("cannot write metric reports to the disk; they are kept in memory only: %s", error)


def _write_all(file: int, data: bytes, at: int) -> None:
    while data:
        count = os.pwrite(file, data, at)
        data, at = data[count:], at + count
