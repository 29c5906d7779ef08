"""NVML by a double that raises the real library's exceptions, and answers as it was seen to on an H200."""

import functools
import types

import pynvml

GB = 1e9


RESERVED = 600_000_000


class Gpu:
    def __init__(self, index, uuid=None, fails=None, processes=None):
        self.index, self.uuid, self.fails = index, uuid or f"GPU-{index:08x}", dict(fails or {})
        self.processes = dict(processes or {})


# Of every GPU: the field that may fail, and the answer.
ANSWERS = {
    "nvmlDeviceGetName": ("name", "H200"),
    "nvmlDeviceGetUtilizationRates": ("utilization", types.SimpleNamespace(gpu=50, memory=10)),
    "nvmlDeviceGetTemperature": ("temperature", 40),
    "nvmlDeviceGetPowerUsage": ("power", 120_500),
    "nvmlDeviceGetGraphicsRunningProcesses": ("graphics", []),
}


class Nvml:
    """The functions of pynvml that are used, over GPUs of our own making; all else is pynvml's."""

    def __init__(self, *gpus, mig=()):
        self.gpus, self.mig = list(gpus), {gpu.uuid: gpu for gpu in mig}
        self.init_error = None
        self.initialised = 0

    def __getattr__(self, name):
        if name in ANSWERS:
            return functools.partial(self._answer, *ANSWERS[name])
        return getattr(pynvml, name)

    def _answer(self, field, answer, gpu, sensor=None):
        self._check(gpu, field)
        assert sensor == (pynvml.NVML_TEMPERATURE_GPU if field == "temperature" else None)
        return answer

    def nvmlInit(self):
        if self.init_error:
            raise pynvml.NVMLError(self.init_error)
        self.initialised += 1

    def nvmlShutdown(self):
        self._check()
        self.initialised -= 1

    def _check(self, gpu=None, field=None):
        if not self.initialised:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_UNINITIALIZED)
        if gpu is not None:
            for key in ("all", field):
                if key in gpu.fails:
                    raise pynvml.NVMLError(gpu.fails[key])

    def nvmlDeviceGetCount(self):
        self._check()
        return len(self.gpus)

    def nvmlDeviceGetHandleByIndex(self, index):
        self._check()
        if not 0 <= index < len(self.gpus):
            raise pynvml.NVMLError(pynvml.NVML_ERROR_INVALID_ARGUMENT)
        self._check(self.gpus[index], "handle")
        return self.gpus[index]

    def nvmlDeviceGetHandleByUUID(self, uuid):
        self._check()
        devices = self.mig | {gpu.uuid: gpu for gpu in self.gpus}
        if uuid not in devices:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_FOUND)
        return devices[uuid]

    def nvmlDeviceGetUUID(self, gpu):
        self._check(gpu, "uuid")
        return gpu.uuid

    def nvmlSystemGetDriverVersion(self):
        self._check()
        return "570.1"

    def nvmlDeviceGetMemoryInfo(self, gpu, version):
        """As nvidia-smi, the second version does not count what the driver keeps as used."""
        self._check(gpu, "memory")
        total, used = int(80 * GB), int((gpu.index + 1) * GB)
        assert version == pynvml.nvmlMemory_v2
        free = total - used - RESERVED
        return types.SimpleNamespace(total=total, used=used, free=free, reserved=RESERVED)

    def nvmlDeviceGetComputeRunningProcesses(self, gpu):
        self._check(gpu, "processes")
        return [types.SimpleNamespace(pid=pid, usedGpuMemory=used) for pid, used in gpu.processes.items()]
