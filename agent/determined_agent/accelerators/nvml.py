"""Program that prints the NVIDIA GPUs and MIG instances of this machine as JSON: ``Reading`` of ``nvidia``."""

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from typing import Any

import pynvml

from determined_agent.accelerators.device import Device

_BROKEN = (pynvml.NVML_ERROR_GPU_IS_LOST, pynvml.NVML_ERROR_RESET_REQUIRED, pynvml.NVML_ERROR_UNKNOWN)
_MIB = 1 << 20


class Gpu:
    """One GPU, or one instance of a GPU. ``problem``: the first error that says that it does not work."""

    def __init__(self, handle: object) -> None:
        self.handle = handle
        self.problem = ""

    def read(self, *functions: Callable[..., Any]) -> Any:  # noqa: ANN401  # each function has its own type
        """Returns the answer of the first function that the driver has; None if it does not give this figure."""
        for function in functions:
            try:
                return function(self.handle)
            except pynvml.NVMLError as error:
                if _code(error) in _BROKEN:
                    self.problem = self.problem or str(error)
                if _code(error) != pynvml.NVML_ERROR_FUNCTION_NOT_FOUND:
                    return None
        return None

    def memory_used_mib(self) -> int | None:
        memory = self.read(_memory_without_reserved, pynvml.nvmlDeviceGetMemoryInfo)
        return None if memory is None else memory.used // _MIB

    def processes(self) -> tuple[int, ...]:
        """Returns the programs that compute; a desktop that draws on a GPU does not keep others from it."""
        own = self.read(pynvml.nvmlDeviceGetComputeRunningProcesses_v3, pynvml.nvmlDeviceGetComputeRunningProcesses_v2)
        shared = self.read(pynvml.nvmlDeviceGetMPSComputeRunningProcesses)
        return tuple(dict.fromkeys(process.pid for process in [*(own or ()), *(shared or ())]))

    def instances(self) -> Iterator["Gpu"]:
        """Yields the instances of a partitioned GPU. Their indexes may have gaps."""
        for index in range(self.read(pynvml.nvmlDeviceGetMaxMigDeviceCount) or 0):
            handle = self.read(lambda whole, index=index: pynvml.nvmlDeviceGetMigDeviceHandleByIndex(whole, index))
            if handle is not None:
                yield Gpu(handle)


def main() -> None:
    """Prints the devices that the driver lists, and the errors of those that it does not describe."""
    devices: list[Device] = []
    problems: list[str] = []
    try:
        pynvml.nvmlInit()
        for number in range(pynvml.nvmlDeviceGetCount()):
            try:
                devices += _devices(Gpu(pynvml.nvmlDeviceGetHandleByIndex(number)))
            except pynvml.NVMLError as error:
                problems.append(f"GPU {number}: {error}")
        problems += [] if devices or problems else ["lists no device"]
    except pynvml.NVMLError as error:
        # Without the library there is no driver, which is no problem.
        problems += [] if _code(error) == pynvml.NVML_ERROR_LIBRARY_NOT_FOUND else [str(error)]
    print(json.dumps({"devices": [asdict(device) for device in devices], "problems": problems}))


def _devices(gpu: Gpu) -> Iterator[Device]:
    """Yields a GPU, or its instances if it is partitioned. Raises NVMLError if the GPU has no UUID."""
    utilization = gpu.read(pynvml.nvmlDeviceGetUtilizationRates)
    rows = gpu.read(pynvml.nvmlDeviceGetRemappedRows)
    whole = Device(
        uuid=pynvml.nvmlDeviceGetUUID(gpu.handle),
        type="cuda",
        brand=gpu.read(pynvml.nvmlDeviceGetName) or "",
        bus=_bus(pynvml.nvmlDeviceGetPciInfo(gpu.handle).busId),
        memory_used_mib=gpu.memory_used_mib(),
        utilization=None if utilization is None else utilization.gpu,
        uncorrected_errors=gpu.read(_uncorrected) or 0,
        processes=gpu.processes(),
    )
    failed_rows = "rows of its memory could not be replaced" if rows is not None and rows[3] else ""
    whole = replace(whole, problem=failed_rows or gpu.problem)
    mode = gpu.read(pynvml.nvmlDeviceGetMigMode)
    if mode is None or mode[0] != pynvml.NVML_DEVICE_MIG_ENABLE:
        yield whole
        return
    for part in gpu.instances():
        name = part.read(pynvml.nvmlDeviceGetName) or ""
        yield replace(
            whole,
            uuid=pynvml.nvmlDeviceGetUUID(part.handle),
            brand=name if " MIG " in name else f"{whole.brand} MIG",
            memory_used_mib=part.memory_used_mib(),
            utilization=None,
            processes=part.processes(),
            problem=whole.problem or part.problem,
        )


def _code(error: pynvml.NVMLError) -> int:
    return int(error.value)  # pyright: ignore[reportAttributeAccessIssue]  # its __new__ sets it


def _memory_without_reserved(handle: object) -> Any:  # noqa: ANN401  # a structure of the library
    # The first version counts what the driver reserves for itself as used: hundreds of MiB of a GPU that nobody uses.
    return pynvml.nvmlDeviceGetMemoryInfo(handle, version=pynvml.nvmlMemory_v2)


def _uncorrected(handle: object) -> int:
    """Returns the uncorrected errors since the driver was loaded."""
    return int(
        pynvml.nvmlDeviceGetTotalEccErrors(handle, pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, pynvml.NVML_VOLATILE_ECC)
    )


def _bus(text: str) -> str:
    """``00000000:3B:00.0`` as the kernel writes it: ``0000:3b:00.0``."""
    domain, colon, rest = text.lower().partition(":")
    return f"{domain[-4:]}{colon}{rest}"


if __name__ == "__main__":
    main()
