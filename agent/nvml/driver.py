"""NVML's functions by name: codes sorted, progress left where the parent can see it.

Nothing here imports pynvml: the child hands the module over. The functions are called on the
library that pynvml loaded, with buffers that are kept, since pynvml makes new ones at each call
and raises UnicodeDecodeError, which is no NVMLError, for a name with odd bytes.
"""

from __future__ import annotations

import ctypes

from agent.probe import ReadingFailed, SourceGone, Trouble

TYPE_CHECKING = False
if TYPE_CHECKING:
    import mmap
    from typing import Any

MARK_BYTES = 64
"""Size of the mark: one byte for the GPU (its index + 1, 0 for none), then the function's name."""
IDLE = bytes(MARK_BYTES)
TEXT_BYTES = 96

_PERMANENT = (
    "INVALID_ARGUMENT",
    "NOT_SUPPORTED",
    "NO_PERMISSION",
    "FUNCTION_NOT_FOUND",
    "VGPU_ECC_NOT_SUPPORTED",
    "FREQ_NOT_SUPPORTED",
    "ARGUMENT_VERSION_MISMATCH",
    "DEPRECATED",
)
_LOST = ("GPU_IS_LOST", "RESET_REQUIRED", "GPU_NOT_FOUND")
_GONE = ("UNINITIALIZED", "DRIVER_NOT_LOADED", "LIBRARY_NOT_FOUND", "LIB_RM_VERSION_MISMATCH")


class DriverGone(SourceGone):
    """The library cannot be used at all: not here, no driver, or of another version.

    `code` is NVML's, 0 where there is none.
    """

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason


class Driver:
    """Calls NVML. `nvml` is the pynvml module, `mark` a mapping shared with the parent."""

    def __init__(self, nvml: Any, mark: mmap.mmap | None = None) -> None:
        self.nvml = nvml
        self._mark = mark
        self._functions: dict[str, Any] = {}
        self._marks: dict[tuple[int, str], bytes] = {}
        self._permanent = {getattr(nvml, f"NVML_ERROR_{name}", None) for name in _PERMANENT}
        self._lost = {getattr(nvml, f"NVML_ERROR_{name}", None) for name in _LOST}
        self._gone = {getattr(nvml, f"NVML_ERROR_{name}", None) for name in _GONE}
        self._text = ctypes.create_string_buffer(TEXT_BYTES)

    def start(self) -> None:
        """Load the library and initialise it. Raises DriverGone."""
        self.mark(-1, "nvmlInit")
        try:
            self.nvml.nvmlInit()
        except self.nvml.NVMLError as error:
            raise DriverGone(error.value, self.describe(error.value)) from None
        self.idle()

    def mark(self, index: int, name: str) -> None:
        """Say what is called now, so that the parent can tell which GPU hangs or crashes."""
        if self._mark is None:
            return
        mark = self._marks.get((index, name))
        if mark is None:
            mark = bytes([index + 1]) + name.encode()[: MARK_BYTES - 1].ljust(MARK_BYTES - 1, b"\0")
            self._marks[index, name] = mark
        self._mark[:MARK_BYTES] = mark

    def idle(self) -> None:
        """No call is in progress."""
        if self._mark is not None:
            self._mark[:MARK_BYTES] = IDLE

    def function(self, name: str) -> Any:
        """The library's function, None where this version of it has none."""
        if name not in self._functions:
            self._functions[name] = getattr(self.nvml.nvmlLib, name, None)
        return self._functions[name]

    def raw(self, index: int, name: str, *arguments: object) -> int:
        """Call and return NVML's code. Raises DriverGone."""
        function = self._functions.get(name) or self.function(name)
        if function is None:
            return int(self.nvml.NVML_ERROR_FUNCTION_NOT_FOUND)
        if self._mark is not None:
            mark = self._marks.get((index, name))
            if mark is None:
                self.mark(index, name)
            else:
                self._mark[:MARK_BYTES] = mark
        code: int = function(*arguments)
        if code in self._gone:
            raise DriverGone(code, self.describe(code))
        return code

    def call(self, index: int, name: str, *arguments: object) -> None:
        """Call. Raises ReadingFailed with what the code means, or DriverGone."""
        code = self.raw(index, name, *arguments)
        if code:
            raise self.failure(code)

    def failure(self, code: int) -> ReadingFailed:
        """What a code means for the readings to come."""
        trouble = (
            Trouble.LOST
            if code in self._lost
            else Trouble.PERMANENT
            if code in self._permanent
            else Trouble.TRANSIENT
        )
        return ReadingFailed(trouble, self.describe(code))

    def describe(self, code: int) -> str:
        """A code in NVML's own words, and what to do where that is known."""
        nvml = self.nvml
        advice = {
            nvml.NVML_ERROR_LIBRARY_NOT_FOUND: "libnvidia-ml.so.1 is not installed",
            nvml.NVML_ERROR_DRIVER_NOT_LOADED: "the NVIDIA kernel module is not loaded",
            nvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH: "the loaded NVIDIA kernel module and "
            "libnvidia-ml.so.1 are of different versions: reload the module or reboot",
            nvml.NVML_ERROR_NO_PERMISSION: "no permission",
        }
        if code in advice:
            return str(advice[code])
        return str(nvml.NVMLError(code))

    def text(self, index: int, name: str, *arguments: object) -> str:
        """A text of the driver; bytes that are no UTF-8 are shown as escapes."""
        self.call(index, name, *arguments, self._text, ctypes.c_uint(TEXT_BYTES))
        return self._text.value.decode("utf-8", "backslashreplace")

    def number(self, index: int, name: str, *arguments: object) -> int:
        """A 32-bit number of the driver. Raises ReadingFailed where it says "not available"."""
        value = ctypes.c_uint()
        self.call(index, name, *arguments, ctypes.byref(value))
        return available(value.value, 32)


def plain(structure: Any) -> Any:
    """A twin of pynvml's structure without its Python-level, decoding attribute access."""
    return type(structure.__name__, (ctypes.Structure,), {"_fields_": structure._fields_})


def available(value: int, bits: int) -> int:
    """The value, unless all its bits are set: NVML_VALUE_NOT_AVAILABLE and its 32-bit kin."""
    if value == (1 << bits) - 1:
        raise ReadingFailed(Trouble.TRANSIENT, "the driver answers that it is not available")
    return value
