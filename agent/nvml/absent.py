"""GPUs that do not answer: remembered, and asked again by a child process of their own."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Set
from typing import Any

from agent.nvml.process import START_SECONDS, ChildFailed, NvmlProcess
from agent.nvml.types import GpuReading

FIRST_PROBE, LAST_PROBE = 5.0, 300.0
"""Seconds before an absent GPU is probed for the first time, and at most between two probes."""

FORGIVEN_AFTER = 3600.0
"""Seconds of good behaviour after which a GPU that returned is probed at the first pace again."""


class Absent:
    """A GPU that hung, crashed its reader, was lost, or is no longer listed."""

    def __init__(self, index: int | None, uuid: str | None, name: str | None, reason: str) -> None:
        self.index = index
        self.uuid = uuid
        self.name = name
        self.reason = reason
        self.left_out = False
        """Whether the reading child must not touch it."""
        self.wait = FIRST_PROBE
        self.probe_at = time.monotonic() + FIRST_PROBE

    def later(self) -> None:
        """Probe again, after twice the time."""
        self.wait = min(self.wait * 2, LAST_PROBE)
        self.probe_at = time.monotonic() + self.wait


class AbsentGpus:
    """All absent GPUs; at most one probe runs at a time, and none while one cannot be killed."""

    def __init__(self, start: Callable[[], NvmlProcess]) -> None:
        self._start = start
        self._entries: list[Absent] = []
        self._probe: tuple[NvmlProcess, Absent] | None = None
        self._dying: list[NvmlProcess] = []
        self._past: dict[str, tuple[float, float]] = {}

    def __iter__(self) -> Iterator[Absent]:
        return iter(tuple(self._entries))

    def find(self, uuid: str | None, index: int | None) -> Absent | None:
        """The entry of a GPU: by UUID, or by index where its UUID never became known."""
        for entry in self._entries:
            same = entry.uuid == uuid if uuid and entry.uuid else entry.index == index
            if same:
                return entry
        return None

    def add(self, index: int | None, uuid: str | None, name: str | None, reason: str) -> Absent:
        """Remember a GPU, once."""
        entry = self.find(uuid, index)
        if entry is None:
            entry = Absent(index, uuid, name, reason)
            wait, until = self._past.get(uuid or "", (FIRST_PROBE, 0.0))
            if time.monotonic() < until:
                entry.wait = wait
                entry.later()
            self._entries.append(entry)
        entry.reason = reason
        return entry

    def remove(self, entry: Absent) -> None:
        """It answers again."""
        self._entries.remove(entry)
        if entry.uuid is not None:
            self._past[entry.uuid] = entry.wait, time.monotonic() + FORGIVEN_AFTER
        if self._probe is not None and self._probe[1] is entry:
            self._end_probe()

    def readings(self, answered: Set[str | None]) -> list[GpuReading]:
        """The rows of those that no child reads, less the UUIDs that answered."""
        return [
            GpuReading(e.uuid, e.index, e.name, {}, {}, {}, e.reason)
            for e in self._entries
            if (e.left_out or e.index is None) and e.uuid not in answered
        ]

    def left_out(self) -> list[int]:
        """The indexes that a reading child must not touch."""
        return sorted({e.index for e in self._entries if e.left_out and e.index is not None})

    def step(self) -> Absent | None:
        """Go on with probing, without waiting; a GPU that was found to answer, if any."""
        self._dying = [process for process in self._dying if not process.reaped()]
        if self._probe is None:
            due = [e for e in self._entries if e.probe_at <= time.monotonic()]
            if due and not self._dying:
                self._begin(min(due, key=lambda entry: entry.probe_at))
            return None
        process, entry = self._probe
        try:
            answer = process.answer(0, START_SECONDS)
        except ChildFailed:
            answer = {"error": "it hangs or crashes still"}
        if answer is None:
            return None
        self._end_probe()
        if "uuid" not in answer or "error" in answer or "gone" in answer:
            entry.later()
            return None
        if entry.uuid is not None and answer["uuid"] != entry.uuid:
            entry.index = None  # the driver lists another GPU in its place: ask by UUID
            entry.later()
            return None
        entry.left_out = False
        entry.later()
        return entry

    def _begin(self, entry: Absent) -> None:
        request: dict[str, Any] = {"op": "probe", "index": entry.index, "uuid": entry.uuid}
        try:
            process = self._start()
            self._probe = process, entry
            process.ask(request)
        except (ChildFailed, OSError):
            self._end_probe()
            entry.later()

    def _end_probe(self) -> None:
        if self._probe is not None:
            process, self._probe = self._probe[0], None
            process.close()
            if not process.reaped():
                self._dying.append(process)

    def close(self) -> None:
        """End the probe that runs."""
        self._end_probe()
