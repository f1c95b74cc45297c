"""The parent side of NVML: asks the child with a deadline, replaces it, tells what happened.

``NvmlClient.tick`` gives the readings of all GPUs that answer, whatever the others, the driver or
its library do; it never raises. A child that hangs on a GPU is killed, and the next one leaves
that GPU out; a child of its own looks with growing patience whether it answers again.
"""

from __future__ import annotations

import logging
import resource
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from agent.host.hostfs import HostFs
from agent.nvml.absent import AbsentGpus
from agent.nvml.address import same_address
from agent.nvml.process import ChildFailed, NvmlProcess
from agent.nvml.restarts import Blame, Restarts
from agent.nvml.sleep import ALL_ASLEEP, Sleepers, sleeping
from agent.nvml.told import Told
from agent.nvml.types import (
    GpuProcess,
    GpuReading,
    NvmlEvent,
    NvmlEventKind,
    NvmlTick,
    gpu_info,
    gpu_process,
    mig_readings,
    remember_best,
)
from agent.nvml.xids import Xids
from telemetry.inventory import GpuInfo

log = logging.getLogger(__name__)

MISMATCH = 18
"""NVML_ERROR_LIB_RM_VERSION_MISMATCH; the parent does not import pynvml."""
RELEASED = "released: the GPUs' device files are closed until `talla-agent release --resume`"


class NvmlClient:
    """The GPUs of this machine.

    `deadline` is how many seconds one call of the driver may take before it counts as hung,
    `throughput_interval` how often PCIe throughput is read where there are no byte counters.
    `clock` is given in tests whose time is not the machine's: the child then takes its rates by
    it. `environment` is that of the child. Use it from one thread, one that lives as long as it.
    """

    def __init__(
        self,
        deadline: float = 5.0,
        throughput_interval: float = 2.0,
        profiling: bool = True,
        clock: Callable[[], float] | None = None,
        environment: Mapping[str, str] | None = None,
        sleepers: Sleepers | None = None,
    ) -> None:
        self._deadline = deadline
        self._throughput_interval = throughput_interval
        self._profiling = profiling
        self._clock = clock
        self._environment = environment
        self._sleepers = sleepers or Sleepers(HostFs())
        self._unopened: frozenset[str] = frozenset()
        self._child: NvmlProcess | None = None
        self._asked: str | None = None
        self._asked_at = 0.0
        self._child_seconds = 0.0
        self._tick_wanted = False
        self._released = False
        self._missing: str | None = "the driver has not been asked yet"
        self._restarts = Restarts()
        self._told_missing = False
        self._list_anew = False
        self._count: int | None = None
        self._assumed: dict[int, str] = {}
        self._xids = Xids.load()
        self._identity: dict[str, dict[str, Any]] = {}
        self._facts: dict[str, Mapping[str, Any]] = {}
        self._told = Told(self._xids)
        self._best: dict[str, dict[str, float]] = {}
        self._processes: dict[str, tuple[GpuProcess, ...]] = {}
        self._blame = Blame()
        self._events: list[NvmlEvent] = []
        self._dying: list[NvmlProcess] = []
        self._absent = AbsentGpus(self._start)
        self.system: Mapping[str, str] = {}
        """Versions of driver, NVML and CUDA, as far as they are known."""
        self.restarts_total = 0
        """Children that hung or crashed."""

    def tick(self, wait: float | None = None) -> NvmlTick:
        """This tick's readings. Waits for at most `wait` seconds; None: until there is an answer,
        or the driver is known to be missing or hung."""
        self.begin_tick()
        return self.end_tick(wait)

    def begin_tick(self) -> None:
        """Ask for a tick without waiting, so that the host can be read meanwhile."""
        self._tick_wanted = True
        self._dying = [process for process in self._dying if not process.reaped()]
        if self._released:
            return
        self._sleepers.look(self._now())
        if self._unopened - self._sleepers.asleep:
            self._drop_child(0.2)  # one woke: the next child opens it too
        # Looking for a GPU by UUID may wake others.
        returned = None if self._sleepers.asleep else self._absent.step()
        if returned is not None:
            log.info("GPU %s answers again: it is taken back", returned.uuid or returned.index)
            self._drop_child(0.2)
        self._go_on()

    def end_tick(self, wait: float | None = None) -> NvmlTick:
        """The readings that `begin_tick` asked for; see `tick`."""
        until = None if wait is None else time.monotonic() + wait
        self._go_on()  # a child that had ended when it was asked is replaced in the same tick
        while self._tick_wanted and self._child is not None:
            left = 0.25 if until is None else max(0.0, until - time.monotonic())
            try:
                answer = self._child.answer(left, self._deadline)
            except ChildFailed as failed:
                self._replace(failed)
                self._go_on()
                continue
            if answer is None:
                if until is None:
                    continue
                return NvmlTick(self._now(), (), "the driver has not answered yet", waiting=True)
            try:
                tick = self._take(answer)
            except (LookupError, TypeError, ValueError):  # a child of another version of ours
                reason = "the NVML process answers unintelligibly: restart the agent"
                self._replace(ChildFailed(reason, None, "", hung=False))
                continue
            if tick is not None:
                return tick
            self._go_on()
        missing = RELEASED if self._released else self._missing
        return NvmlTick(self._now(), (), missing or "the NVML process is being replaced")

    @property
    def pid(self) -> int | None:
        """The child's process id, while there is one."""
        return None if self._child is None else self._child.pid

    def processes(self) -> tuple[GpuProcess, ...]:
        """The processes on all GPUs, each GPU's at most some ticks old."""
        return tuple(process for listed in self._processes.values() for process in listed)

    def unavailable_processes(self) -> dict[str, dict[str, str]]:
        """By UUID, what of the processes the driver does not tell, and why."""
        return self._told.unavailable_processes()

    def take_events(self) -> tuple[NvmlEvent, ...]:
        """What happened since the last call."""
        events, self._events = tuple(self._events), []
        return events

    def inventory(self) -> tuple[GpuInfo, ...]:
        """What is known of each GPU that has answered, by index."""
        rows = (
            gpu_info({**self._identity[uuid], "uuid": uuid}, facts, self._best.get(uuid, {}))
            for uuid, facts in self._facts.items()
        )
        return tuple(sorted(rows, key=lambda gpu: gpu.index if gpu.index is not None else 0))

    def dropped_total(self) -> dict[str, int]:
        """Values that no card can have, and were dropped, by metric."""
        return self._told.dropped_total()

    def errors_total(self) -> int:
        """Readings that failed and were tried again."""
        return self._told.errors_total()

    def cpu_seconds(self) -> float:
        """Processor time of the children, those that have ended included."""
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
        return ended.ru_utime + ended.ru_stime + (self._child_seconds if self._child else 0.0)

    def release(self) -> None:
        """Let go of the GPUs' device files, for a driver upgrade, until `resume`."""
        self._released = True
        self._absent.close()
        self._drop_child(0.5)

    def resume(self) -> None:
        """Take the GPUs back."""
        self._released = False
        self._restarts = Restarts()

    def close(self) -> None:
        """End the child, without waiting for a driver that does not return."""
        self._released = True
        self._absent.close()
        self._drop_child(0.5)

    def _start(self) -> NvmlProcess:
        return NvmlProcess(self._environment)

    def _now(self) -> float:
        return time.monotonic() if self._clock is None else self._clock()

    def _go_on(self) -> None:
        """Start a child if there is none and it is time; ask it for what comes next."""
        if self._released or self._asked is not None:
            return
        try:
            if self._child is None:
                if not self._restarts.due():
                    return
                asleep = self._sleepers.asleep
                if asleep and not self._sleepers.awake:
                    self._missing = ALL_ASLEEP
                    return
                self._child = self._start()
                self._restarts.born()
                self._child_seconds = 0.0
                self._ask(
                    "open",
                    deadline=self._deadline,
                    throughput_interval=self._throughput_interval,
                    profiling=self._profiling,
                    leave_out=self._absent.left_out(),
                    buses=self._sleepers.awake if asleep else None,
                )
                self._unopened = asleep
            elif self._tick_wanted:
                self._ask("tick", asleep=sorted(self._sleepers.asleep))
        except ChildFailed as failed:
            self._replace(failed)
        except OSError as error:  # no process or descriptor to be had
            self._child = None
            self._look_later(f"the NVML process cannot be started: {error.strerror}")

    def _ask(self, operation: str, **arguments: object) -> None:
        assert self._child is not None
        self._asked, self._asked_at = operation, self._now()
        if self._clock is not None:
            arguments["now"] = self._asked_at
        self._child.ask({"op": operation, **arguments})

    def _take(self, answer: Mapping[str, Any]) -> NvmlTick | None:
        """Digest an answer; the tick, if it is one."""
        asked, self._asked = self._asked, None
        if "gone" in answer:
            self._gone(str(answer["gone"]), int(answer["code"]))
            return None
        if asked == "open":
            self._opened(answer)
            return None
        self._tick_wanted = False
        self._restarts.answered()
        self._child_seconds = float(answer.get("cpu_seconds", self._child_seconds))
        xids = self._told.codes(answer.get("xids"))
        self._tell_xids(xids)
        doubles = iter(answer["doubles"])
        readings = [self._reading(row, doubles, xids) for row in answer["gpus"]]
        for card, row in zip(readings[:], answer["gpus"], strict=True):
            if isinstance(row, dict) and "mig" in row:
                readings += mig_readings(card, row["mig"])
        answered = {reading.uuid for reading in readings}
        readings += self._absent.readings(answered)
        readings += [
            sleeping(uuid, known["index"], known["name"])
            for uuid, known in self._identity.items()
            if uuid not in answered and self._sleeps(uuid)
        ]
        if "count" in answer or self._list_anew:
            self._list_anew = False
            self._drop_child(0.2)  # the next one lists the GPUs anew
        readings.sort(key=lambda r: (r.index is None, r.index, r.uuid))
        return NvmlTick(self._asked_at, tuple(readings))

    def _opened(self, answer: Mapping[str, Any]) -> None:
        if self._told_missing:
            self._event(NvmlEventKind.DRIVER_FOUND, "the NVIDIA driver answers")
        self._missing, self._told_missing = None, False
        self.system = answer["system"]
        before, self._count = self._count, answer["count"]
        if before is not None and before != self._count:
            text = f"the driver lists {self._count} GPUs, before it were {before}"
            self._event(NvmlEventKind.GPU_COUNT_CHANGED, text)
        self._told.begin_anew()
        self._assumed = {}
        listed = {gpu.get("uuid") for gpu in answer["gpus"]}
        silent = {gpu["index"] for gpu in answer["gpus"] if "uuid" not in gpu}
        for uuid, identity in self._identity.items():
            entry = self._absent.find(uuid, identity["index"])
            if uuid in listed or (entry is not None and entry.left_out) or self._sleeps(uuid):
                continue
            if identity["index"] in silent:  # it answers errors only, where it was before
                self._assumed[identity["index"]] = uuid
            else:
                self._lose(None, uuid, identity["name"], "the driver no longer lists it")
                self._absent.add(None, uuid, None, "the driver no longer lists it").index = None
        for gpu in answer["gpus"]:
            if "uuid" in gpu:
                self._identity[gpu["uuid"]] = {"index": gpu["index"], "name": gpu.get("name")}

    def _tell_xids(self, told: Mapping[str, list[int]]) -> None:
        """Tells the XIDs of this tick as events."""
        for uuid, codes in told.items():
            for code in codes:
                known = self._identity.get(uuid, {})
                text = f"GPU {known.get('index', uuid)}: {self._xids[code].text}"
                self._event(NvmlEventKind.XID, text, uuid)

    def _reading(
        self, row: dict[str, Any] | str, doubles: Iterator[float], xids: Mapping[str, list[int]]
    ) -> GpuReading:
        if isinstance(row, str):  # the usual case, made short: nothing but its readings is new
            return self._told.reading(row, doubles, xids.get(row))
        if "asleep" in row:
            return sleeping(row.get("uuid"), row["index"], row.get("name"))
        if "error" in row:
            index = row["index"]
            known = row.get("uuid") or self._assumed.get(index)
            name = row.get("name") or self._identity.get(known or "", {}).get("name")
            if row.get("lost"):
                self._lose(index, known, name, row["error"])
            return GpuReading(known, index, name, {}, {}, {}, row["error"])
        uuid, told = row["uuid"], self._told.take(row)
        if "processes" in row:
            self._processes[uuid] = tuple(gpu_process(uuid, e) for e in row["processes"])
        if "facts" in row:
            self._facts[uuid] = row["facts"]
        if "index" in row or "name" in row or uuid not in self._identity:
            self._identity[uuid] = {"index": told["index"], "name": told.get("name")}
        entry = self._absent.find(uuid, told["index"])
        if entry is not None and (entry.uuid == uuid or not entry.left_out):
            self._list_anew |= entry.left_out  # it has another index now
            self._absent.remove(entry)
            self._event(NvmlEventKind.GPU_RETURNED, f"GPU {told['index']} answers again", uuid)
        reading = self._told.reading(uuid, doubles, xids.get(uuid))
        remember_best(self._best.setdefault(uuid, {}), reading.values)
        return reading

    def _lose(self, index: int | None, uuid: str | None, name: str | None, reason: str) -> None:
        known = self._absent.find(uuid, index)
        self._absent.add(index, uuid, name, reason)
        if known is None:
            self._processes.pop(uuid or "", None)
            where = f"GPU {index}" if index is not None else f"GPU {uuid}"
            self._event(NvmlEventKind.GPU_LOST, f"{where}: {reason}", uuid)

    def _replace(self, failed: ChildFailed) -> None:
        """Do without the child; leave out the GPU that is to blame."""
        self.restarts_total += 1
        kind = NvmlEventKind.CHILD_HUNG if failed.hung else NvmlEventKind.CHILD_CRASHED
        uuid = self._uuid_at(failed.index)
        self._event(kind, failed.reason, uuid)
        self._drop_child(0.0)
        if self._blame.falls_on_gpu(failed):
            name = self._identity.get(uuid or "", {}).get("name")
            self._lose(failed.index, uuid, name, failed.reason)
            entry = self._absent.find(uuid, failed.index)
            if entry is not None:
                entry.left_out, entry.index = True, failed.index
                entry.later()
        else:
            self._restarts.died(failed)
            self._missing = failed.reason

    def _sleeps(self, uuid: str) -> bool:
        bus_id = self._facts.get(uuid, {}).get("pci_bus_id")
        return same_address(bus_id, self._sleepers.asleep)

    def _uuid_at(self, index: int | None) -> str | None:
        known = self._identity.items()
        return next((u for u, i in known if index is not None and i["index"] == index), None)

    def _gone(self, reason: str, code: int) -> None:
        self._drop_child(0.2)
        if reason != self._missing:
            mismatch = code == MISMATCH
            kind = NvmlEventKind.DRIVER_MISMATCH if mismatch else NvmlEventKind.DRIVER_MISSING
            self._event(kind, reason)
            self._told_missing = True
        self._look_later(reason)

    def _look_later(self, reason: str) -> None:
        self._missing = reason
        self._restarts.later()

    def _drop_child(self, patience: float) -> None:
        child, self._child, self._asked = self._child, None, None
        self._unopened = frozenset()
        if child is not None:
            child.close(patience)
            if not child.reaped():
                self._dying.append(child)

    def _event(self, kind: NvmlEventKind, text: str, uuid: str | None = None) -> None:
        self._events.append(NvmlEvent(kind, self._now(), text, uuid))


__all__ = ["GpuProcess", "GpuReading", "NvmlClient", "NvmlEvent", "NvmlEventKind", "NvmlTick"]
