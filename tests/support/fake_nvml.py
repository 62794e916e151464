"""Scripted NVML: a module ``pynvml`` in a folder for ``PYTHONPATH`` that describes the GPUs of a test.

It has the constants and errors of the real module, and replaces only functions that this has too.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from pynvml import __file__ as _REAL

_MODULE = """
import json, runpy, sys, time
from pathlib import Path
from types import SimpleNamespace as _Answer

globals().update({name: value for name, value in runpy.run_path(REAL).items() if not name.startswith("__")})
_state = json.loads(Path(__file__).with_name("gpus.json").read_text())


def _replaces(function):
    assert callable(globals()[function.__name__]), function
    return function


def _raise(of, what):
    code = of["errors"].get(what)
    if code is not None:
        raise NVMLError(code)


@_replaces
def nvmlInit():
    time.sleep(_state["seconds"])
    if _state["code"]:
        raise NVMLError(_state["code"])


@_replaces
def nvmlDeviceGetCount():
    return len(_state["gpus"])


@_replaces
def nvmlDeviceGetHandleByIndex(index):
    _raise(_state["gpus"][index], "handle")
    return _state["gpus"][index]


@_replaces
def nvmlDeviceGetUUID(handle):
    return handle["uuid"]


@_replaces
def nvmlDeviceGetName(handle):
    _raise(handle, "name")
    return handle["name"]


@_replaces
def nvmlDeviceGetPciInfo(handle):
    return _Answer(busId=handle["bus"])


@_replaces
def nvmlDeviceGetMemoryInfo(handle, version=None):
    _raise(handle, "memory")
    _raise(handle, "memory v2" if version == nvmlMemory_v2 else "memory v1")
    return _Answer(used=(handle["used_mib"] + (0 if version else 600)) << 20)


@_replaces
def nvmlDeviceGetUtilizationRates(handle):
    _raise(handle, "utilization")
    return _Answer(gpu=handle["utilization"])


@_replaces
def nvmlDeviceGetTotalEccErrors(handle, errorType, counterType):
    _raise(handle, "ecc")
    assert (errorType, counterType) == (NVML_MEMORY_ERROR_TYPE_UNCORRECTED, NVML_VOLATILE_ECC)
    return handle["uncorrected"]


@_replaces
def nvmlDeviceGetRemappedRows(handle):
    _raise(handle, "rows")
    return (0, 0, 0, handle["failed_rows"])


@_replaces
def nvmlDeviceGetComputeRunningProcesses_v3(handle):
    _raise(handle, "processes v3")
    return [_Answer(pid=pid) for pid in handle["processes"]]


@_replaces
def nvmlDeviceGetComputeRunningProcesses_v2(handle):
    return [_Answer(pid=pid) for pid in handle["processes"]]


@_replaces
def nvmlDeviceGetMPSComputeRunningProcesses(handle):
    return [_Answer(pid=pid) for pid in handle["shared_processes"]]


@_replaces
def nvmlDeviceGetMigMode(handle):
    _raise(handle, "mig")
    return [int(bool(handle["instances"])), 0]


@_replaces
def nvmlDeviceGetMaxMigDeviceCount(handle):
    return 7


@_replaces
def nvmlDeviceGetMigDeviceHandleByIndex(device, index):
    for number, instance in enumerate(device["instances"]):
        if index == 2 * number:
            return instance
    raise NVMLError(NVML_ERROR_NOT_FOUND)
"""


@dataclass
class Instance:
    """A MIG instance of a GPU."""

    uuid: str
    profile: str = "1g.10gb"
    used_mib: int = 12
    processes: Sequence[int] = ()
    shared_processes: Sequence[int] = ()
    errors: dict[str, int] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return f"NVIDIA H100 80GB HBM3 MIG {self.profile}"


@dataclass
class Gpu:
    """A GPU that the driver lists. ``errors``: codes of NVML for what it does not answer, such as ``memory``."""

    uuid: str
    bus: str = "00000000:3B:00.0"
    name: str = "NVIDIA H100 80GB HBM3"
    used_mib: int = 4
    utilization: int = 0
    uncorrected: int = 0
    failed_rows: int = 0
    processes: Sequence[int] = ()
    shared_processes: Sequence[int] = ()
    """Those of clients of MPS."""
    instances: Sequence[Instance] = ()
    errors: dict[str, int] = field(default_factory=dict)


class FakeNvml:
    """The module in ``folder``, which is put first on ``PYTHONPATH``."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._state = folder / "gpus.json"
        (folder / "pynvml.py").write_text(_MODULE.replace("REAL", repr(_REAL)))
        self.show()

    def show(self, *gpus: Gpu) -> None:
        """Makes the driver list these GPUs."""
        self._write(*gpus)

    def fail(self, code: int) -> None:
        """Makes the driver refuse to start with an error code of NVML."""
        self._write(code=code)

    def hang(self, seconds: float) -> None:
        """Makes the driver answer only after some time."""
        self._write(seconds=seconds)

    def _write(self, *gpus: Gpu, code: int = 0, seconds: float = 0) -> None:
        described = [
            {**asdict(gpu), "instances": [{**asdict(each), "name": each.name} for each in gpu.instances]}
            for gpu in gpus
        ]
        self._state.write_text(json.dumps({"gpus": described, "code": code, "seconds": seconds}))
