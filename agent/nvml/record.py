"""NVML's calls as lines of a file, and a driver that answers from them.

A line: the GPU's index, the function, the plain arguments, the code, and the bytes of every buffer
that the call may have filled, in hexadecimal.
"""

from __future__ import annotations

import ctypes
import json

from agent.nvml.driver import Driver, DriverGone

TYPE_CHECKING = False
if TYPE_CHECKING:
    import mmap
    from typing import Any

_LONGEST = 1 << 14
"""Bytes kept of one buffer: room for some hundred processes."""


class RecordingDriver(Driver):
    """Asks the real driver, and notes what it answers."""

    def __init__(self, nvml: Any, mark: mmap.mmap | None, path: str) -> None:
        super().__init__(nvml, mark)
        self._file = open(path, "a", encoding="ascii")  # noqa: SIM115 - until the process ends

    def start(self) -> None:
        try:
            super().start()
        except DriverGone as gone:
            self._note(-1, "nvmlInit", (), gone.code)
            raise
        self._note(-1, "nvmlInit", (), 0)

    def raw(self, index: int, name: str, *arguments: object) -> int:
        try:
            code = super().raw(index, name, *arguments)
        except DriverGone as gone:
            self._note(index, name, arguments, gone.code)
            raise
        self._note(index, name, arguments, code)
        return code

    def _note(self, index: int, name: str, arguments: tuple[object, ...], code: int) -> None:
        out = [bytes(buffer)[:_LONGEST].rstrip(b"\0").hex() for buffer in _buffers(arguments)]
        line = {"gpu": index, "call": name, "with": _plain(arguments), "code": code, "out": out}
        self._file.write(json.dumps(line) + "\n")
        self._file.flush()


class ReplayingDriver(Driver):
    """Answers from a recording: each call as it was answered in its turn, then with "no data"."""

    def __init__(self, nvml: Any, mark: mmap.mmap | None, path: str) -> None:
        super().__init__(nvml, mark)
        self._lines: dict[str, list[dict[str, Any]]] = {}
        self._names: set[str] = set()
        with open(path, encoding="ascii") as file:
            for line in map(json.loads, file):
                key = _key(line["gpu"], line["call"], line["with"])
                self._lines.setdefault(key, []).append(line)
                self._names.add(line["call"])

    def start(self) -> None:
        code = self._answer(-1, "nvmlInit", ())
        if code:
            raise DriverGone(code, self.describe(code))

    def function(self, name: str) -> Any:
        return name if name in self._names else None

    def raw(self, index: int, name: str, *arguments: object) -> int:
        code = self._answer(index, name, arguments)
        if code in self._gone:
            raise DriverGone(code, self.describe(code))
        return code

    def describe(self, code: int) -> str:
        if code == self.nvml.NVML_ERROR_NO_DATA:
            return "the recording has no further answer"
        return super().describe(code)

    def _answer(self, index: int, name: str, arguments: tuple[object, ...]) -> int:
        lines = self._lines.get(_key(index, name, _plain(arguments)))
        if lines is None:
            return int(self.nvml.NVML_ERROR_FUNCTION_NOT_FOUND)
        if not lines:  # the same answer again would be a counter that stands still: a rate of 0
            return int(self.nvml.NVML_ERROR_NO_DATA)
        line = lines.pop(0)
        for buffer, told in zip(_buffers(arguments), line["out"], strict=True):
            data = bytes.fromhex(told)[: ctypes.sizeof(buffer)]
            ctypes.memset(ctypes.addressof(buffer), 0, ctypes.sizeof(buffer))
            ctypes.memmove(ctypes.addressof(buffer), data, len(data))
        return int(line["code"])


def _key(index: int, name: str, plain: list[object]) -> str:
    return json.dumps([index, name, plain])


def _buffers(arguments: tuple[object, ...]) -> list[Any]:
    """What the library writes into: arrays, and what is passed by reference."""
    found: list[Any] = []
    for argument in arguments:
        target = getattr(argument, "_obj", argument)
        if target is not argument or isinstance(target, ctypes.Array):
            found.append(target)
    return found


def _plain(arguments: tuple[object, ...]) -> list[object]:
    """Numbers and texts that select what is asked for; handles are the GPU's index."""
    found: list[object] = []
    for argument in arguments:
        if isinstance(argument, int):
            found.append(argument)
        elif isinstance(argument, bytes):
            found.append(argument.decode("ascii", "backslashreplace"))
        elif isinstance(argument, ctypes.c_uint | ctypes.c_int):
            found.append(argument.value)
    return found
