"""The one module that calls NVML: a child process, asked over a pipe.

``python -m agent.nvml.child [MARK PARENT]`` reads one JSON object a line and answers each with
one. Behind the line of a tick its readings follow as native doubles: the line says how many
(`doubles`), each GPU's row their `names` when these change. A GPU of which nothing but readings is
new has no row but its UUID.

NVML has no other place in the agent, since pynvml never unloads its library, a driver may crash its
caller, and a call may never return. MARK is a descriptor of shared memory where the child leaves
which GPU it asks for what; PARENT is the process whose end is also its own.

Requests: ``open`` (load, list the GPUs, read what does not change), ``tick`` (this second's
readings of all GPUs; what changes seldom and the processes in turns), ``probe`` (does this one GPU
answer?), ``close``. Each answer holds what was asked for, or ``gone`` with a reason where the
driver cannot be used; the child then ends.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import mmap
import os
import signal
import sys
import time
from array import array

import pynvml

from agent.nvml.address import same_address
from agent.nvml.device import Device
from agent.nvml.driver import MARK_BYTES, Driver, DriverGone
from agent.nvml.events import XidEvents
from agent.nvml.facts import Processes, device_facts, nvlink_peers, system_facts
from agent.nvml.fields import Settings
from agent.nvml.mig import Instance, open_instances
from agent.probe import ReadingFailed, Trouble

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, BinaryIO

TURN = 5
"""Ticks between two readings of what changes seldom and of the processes; each GPU has its turn in
another tick."""
RARE_TURN = 6 * TURN
"""Ticks between two readings of what changes seldom: limits, links, health, MIG instances."""
FIRST_RETRY, LAST_RETRY = 1.0, 60.0
"""Seconds before a lost GPU is asked for again, doubled each time."""
_BY_INSTANCE = "MIG is on: told of each instance"
_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_ENCODER = json.JSONEncoder(separators=(",", ":"))


class Slot:
    """One GPU of the list, whether it answers or not."""

    def __init__(self, index: int, bus: str | None = None) -> None:
        self.index = index
        self.bus = bus
        self.uuid: str | None = None
        self.name: str | None = None
        self.device: Device | None = None
        self.processes: Processes
        self.instances: list[tuple[Instance, Processes]] = []
        self.error: str | None = None
        self.retry_at = 0.0
        self.retry_after = FIRST_RETRY
        self.facts: dict[str, Any] = {}
        self.told: dict[str, Any] = {}
        self.rows = 0

    def lose(self, reason: str, now: float) -> None:
        """Drop the handle: it must not be used again."""
        self.take_instances([])
        if self.device is not None:
            self.device.close()
        self.device = None
        self.error = reason
        self.retry_at = now + self.retry_after
        self.retry_after = min(self.retry_after * 2, LAST_RETRY)

    def take_instances(self, instances: list[Instance]) -> None:
        """The card's MIG instances from now on. What has not changed goes on as it is."""
        if [i.identity for i in instances] == [i.identity for i, _ in self.instances]:
            return
        for instance, _ in self.instances:
            instance.close()
        self.instances = [(instance, Processes(instance)) for instance in instances]
        mig = [instance.facts for instance in instances]
        self.facts = {key: value for key, value in self.facts.items() if key != "mig"}
        if mig:
            self.facts["mig"] = mig

    def who(self) -> dict[str, Any]:
        """What identifies it, as far as it is known."""
        known = {"index": self.index, "uuid": self.uuid, "name": self.name}
        return {key: value for key, value in known.items() if value is not None}


class Session:
    """NVML, opened: the GPUs in the driver's order; with `buses` those alone, by PCI address."""

    def __init__(
        self,
        driver: Driver,
        settings: Settings,
        leave_out: Iterable[int] = (),
        buses: Iterable[str] | None = None,
    ) -> None:
        self.driver = driver
        self.settings = settings
        self.ticks = 0
        self.events = XidEvents(driver)
        self._watched: frozenset[str] = frozenset()
        """The GPUs whose XIDs are told, as the parent knows it."""
        self.left_out = frozenset(leave_out)
        self.count = driver.number(-1, "nvmlDeviceGetCount_v2")
        if buses is None:
            self.slots = [Slot(i) for i in range(self.count) if i not in self.left_out]
        else:
            self.slots = [Slot(-1, bus) for bus in buses]

    def open(self, now: float) -> dict[str, Any]:
        """Get a handle on each GPU, and what does not change."""
        for slot in self.slots:
            self._take(slot, now)
        self.slots = [s for s in self.slots if s.index >= 0 and s.index not in self.left_out]
        devices = [slot.device for slot in self.slots if slot.device is not None]
        with contextlib.suppress(ReadingFailed):  # a GPU lost meanwhile: the next tick says so
            peers = nvlink_peers(devices)
            for slot in self.slots:
                if slot.uuid in peers:
                    slot.facts["nvlink_peers"] = peers[slot.uuid]
        return {
            "system": system_facts(self.driver),
            "count": self.count,
            "gpus": [slot.who() for slot in self.slots],
        }

    def _take(self, slot: Slot, now: float) -> None:
        """A handle by index, or by UUID once that is known; the facts of the GPU behind it."""
        driver = self.driver
        handle = driver.nvml.c_nvmlDevice_t()
        reference = ctypes.byref(handle)
        try:
            if slot.uuid is None and slot.bus is not None:
                by_bus = "nvmlDeviceGetHandleByPciBusId_v2"
                driver.call(-1, by_bus, slot.bus.encode(), reference)
                slot.index = driver.number(-1, "nvmlDeviceGetIndex", handle)
                slot.uuid = driver.text(slot.index, "nvmlDeviceGetUUID", handle)
            elif slot.uuid is None:
                by_index = "nvmlDeviceGetHandleByIndex_v2"
                driver.call(slot.index, by_index, ctypes.c_uint(slot.index), reference)
                slot.uuid = driver.text(slot.index, "nvmlDeviceGetUUID", handle)
            else:
                by_uuid = "nvmlDeviceGetHandleByUUID"
                driver.call(slot.index, by_uuid, slot.uuid.encode(), reference)
            device = Device(driver, slot.index, slot.uuid, handle, self.settings)
            try:
                slot.name = driver.text(slot.index, "nvmlDeviceGetName", handle)
            except ReadingFailed as failure:
                if failure.trouble is Trouble.LOST:
                    raise
            device.find_limits(slot.name)
            device.fields.refresh()
            device.read_slowly()
            slot.facts = device_facts(device)
            if device.unified:
                slot.facts["memory_kind"] = "unified"
            slot.take_instances(open_instances(device))
        except ReadingFailed as failure:
            slot.lose(failure.reason, now)
            return
        slot.device, slot.processes, slot.error = device, Processes(device), None
        self.events.register(device)
        slot.told, slot.rows = {}, 0

    def tick(self, now: float, asleep: Iterable[str] = ()) -> dict[str, Any]:
        """This tick's readings of every GPU that is not left out; those `asleep` are not asked."""
        self.ticks += 1
        sleepers = frozenset(asleep)
        doubles = array("d")
        rows = [self._row(slot, now, sleepers, doubles) for slot in self.slots]
        answer: dict[str, Any] = {"gpus": rows, "doubles": doubles}
        if self.ticks % TURN == 1:
            answer["cpu_seconds"] = time.process_time()
        xids = self.events.take()
        if xids.keys() != self._watched or any(xids.values()):
            self._watched = frozenset(xids)
            answer["xids"] = xids
        if self.ticks % TURN == 0:
            count = self.driver.number(-1, "nvmlDeviceGetCount_v2")
            if count != self.count:
                answer["count"] = count
        return answer

    def _row(
        self, slot: Slot, now: float, asleep: frozenset[str], doubles: array[float]
    ) -> dict[str, Any] | str:
        """One GPU's row, its UUID if nothing is new; its readings are added to `doubles`."""
        if asleep and same_address(slot.facts.get("pci_bus_id"), asleep):
            return {**slot.who(), "asleep": True}
        if slot.device is None and now >= slot.retry_at:
            self._take(slot, now)
        device = slot.device
        if device is None:
            return {**slot.who(), "error": slot.error, "lost": True}
        processes = None
        # The first two ticks bring everything, for those who ask twice and go.
        turn, first = self.ticks + slot.index, slot.rows < 2
        slowly = first or turn % TURN == 0
        try:
            values = device.read(now)
            instances = [instance.read(now) for instance, _ in slot.instances]
            if slowly:
                rarely = turn % RARE_TURN == 0 or first
                device.read_slowly(rarely=rarely)
                if rarely:
                    slot.take_instances(open_instances(device))
                    slot.index = device.index = device.number("nvmlDeviceGetIndex")
                processes = self._processes(slot)
        except ReadingFailed as failure:
            if failure.trouble is not Trouble.LOST:
                return {**slot.who(), "error": failure.reason}
            slot.lose(failure.reason, now)
            return {**slot.who(), "error": failure.reason, "lost": True}
        slot.retry_after = FIRST_RETRY
        slot.rows += 1
        doubles.extend(values.values())
        row: dict[str, Any] = {"uuid": device.uuid}
        self._tell(slot, row, "names", tuple(values))
        if instances:
            row["mig"] = instances
        if slowly:
            self._tell(slot, row, "index", slot.index)
            self._tell(slot, row, "name", slot.name)
            self._tell(slot, row, "facts", slot.facts)
            self._tell(slot, row, "texts", device.texts)
        self._tell(slot, row, "unavailable", device.unavailable())
        if processes is not None:
            row["processes"] = processes
            row["processes_unavailable"] = slot.processes.unavailable
            if slot.instances:
                row["processes_unavailable"] = {"compute": _BY_INSTANCE}
                row["instances_unavailable"] = {
                    instance.name: processes.unavailable for instance, processes in slot.instances
                }
        self._tell(slot, row, "dropped_total", device.dropped_total)
        self._tell(slot, row, "errors_total", device.errors_total)
        return row if len(row) > 1 else device.uuid

    @staticmethod
    def _processes(slot: Slot) -> list[dict[str, Any]]:
        """Of the card, or of each of its instances: the card's own list says not which."""
        if not slot.instances:
            return slot.processes.read()
        return [
            {**entry, "instance": instance.name}
            for instance, processes in slot.instances
            for entry in processes.read()
        ]

    @staticmethod
    def _tell(slot: Slot, row: dict[str, Any], key: str, value: Any) -> None:
        """Put it into the row if it is not what was told before."""
        if slot.told.get(key) != value:
            slot.told[key] = dict(value) if isinstance(value, dict) else value
            row[key] = value


def probe(driver: Driver, index: int | None, uuid: str | None) -> dict[str, Any]:
    """Whether one GPU answers, and under which UUID it is listed at `index`.

    Asked of a child of its own, since the question itself may hang or crash.
    """
    nvml, handle, mark = driver.nvml, driver.nvml.c_nvmlDevice_t(), -1 if index is None else index
    reference = ctypes.byref(handle)
    try:
        if index is not None:
            at = ctypes.c_uint(index)
            driver.call(mark, "nvmlDeviceGetHandleByIndex_v2", at, reference)
        elif uuid is not None:
            driver.call(mark, "nvmlDeviceGetHandleByUUID", uuid.encode(), reference)
        found = driver.text(mark, "nvmlDeviceGetUUID", handle)
        device = Device(driver, mark, found, handle, Settings())
        device.read(time.monotonic())
        device.read_slowly()
        if device.errors_total:
            return {"uuid": found, "error": next(iter(device.unavailable().values()))}
        Processes(device).read()
    except ReadingFailed as failure:
        code = nvml.NVML_ERROR_INVALID_ARGUMENT
        reason = failure.reason
        absent = index is not None and reason == driver.describe(code)
        return {"error": "the driver does not list it" if absent else reason}
    return {"uuid": found}


class Child:
    """Answers one request after another."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._session: Session | None = None

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """The answer to one request. Raises DriverGone."""
        now = request.get("now")
        if now is None:
            now = time.monotonic()
        match request["op"]:
            case "open":
                self._driver.start()
                every, profiling = request["throughput_interval"], request.get("profiling", True)
                settings = Settings(request["deadline"], every, profiling)
                left_out, buses = request.get("leave_out", ()), request.get("buses")
                self._session = Session(self._driver, settings, left_out, buses)
                return self._session.open(now)
            case "probe":
                self._driver.start()
                return probe(self._driver, request.get("index"), request.get("uuid"))
            case "tick" if self._session is not None:
                return self._session.tick(now, request.get("asleep", ()))
        raise ValueError(f"{request['op']} is not understood here")

    def serve(self, requests: BinaryIO, answers: BinaryIO) -> None:
        """Until the requests end, `close`, or the driver is gone."""
        line, request = b"", {}
        for asked in requests:
            if asked != line:  # one tick is asked for as the other
                line, request = asked, json.loads(asked)
            if request["op"] == "close":
                return
            gone = False
            try:
                answer = self.answer(request)
            except DriverGone as error:
                answer, gone = {"gone": error.reason, "code": error.code}, True
            except ReadingFailed as error:  # of the driver as a whole, as for the number of GPUs
                answer, gone = {"gone": error.reason, "code": 0}, True
            self._driver.idle()
            doubles = answer.pop("doubles", b"")
            if doubles:
                answer["doubles"] = len(doubles)
            answers.write(_ENCODER.encode(answer).encode() + b"\n")
            answers.write(doubles)
            answers.flush()
            if gone:
                return


def _driver(mark: mmap.mmap | None) -> Driver:
    """The driver; one that is recorded, or a recording of one, where that is asked for."""
    record, replay = os.environ.get("TALLA_NVML_RECORD"), os.environ.get("TALLA_NVML_REPLAY")
    if record or replay:
        from agent.nvml.record import RecordingDriver, ReplayingDriver

        if replay:
            return ReplayingDriver(pynvml, mark, replay)
        assert record
        return RecordingDriver(pynvml, mark, record)
    return Driver(pynvml, mark)


def main(arguments: list[str]) -> None:
    """Serve on the standard streams; ends without any of Python's shutdown."""
    # The parent ends us, by closing the pipe or by a kill, so that it sees no crash on Ctrl-C.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    mark = None
    if arguments:
        descriptor, parent = int(arguments[0]), int(arguments[1])
        # A call that never returns would keep us from seeing the end of the pipe.
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(0)
        mark = mmap.mmap(descriptor, MARK_BYTES)
        os.close(descriptor)
    # What the driver's library prints must not get among the answers.
    with os.fdopen(os.dup(1), "wb") as answers:
        os.dup2(2, 1)
        code = 0
        try:
            Child(_driver(mark)).serve(sys.stdin.buffer, answers)
        except BrokenPipeError:
            pass
        except Exception as error:  # noqa: BLE001 - a line for the log, the parent does the rest
            sys.stderr.write(f"NVML process: {type(error).__name__}: {error}\n")
            sys.stderr.flush()
            code = 70  # EX_SOFTWARE, sysexits.h
        # A thread may hang in the driver: nothing waits for it.
        os._exit(code)


if __name__ == "__main__":
    main(sys.argv[1:])
