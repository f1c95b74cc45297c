"""What alert rules look at: each GPU's state, and metrics that need several windows or GPUs.

States come from the one function that decides them, on the window and the one before it. What
must last before it counts as stuck or orphaned lasts by the rule's own duration, so that no run
of windows is kept here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise

from agent.alerts.alerts import Seen
from agent.alerts.exemptions import Job
from agent.nvml.rates import pcie_ceiling
from telemetry.idle_power import learn_idle_power
from telemetry.inventory import GpuInfo, Inventory
from telemetry.states import FIELDS, HOST_FIELDS, Classifier, Jobs, State, Surroundings, WindowState
from telemetry.thresholds import Thresholds
from telemetry.window import Frame, Key, Row, Window
from telemetry.workload import Kind

_IDLE = frozenset({State.IDLE_FREE, State.IDLE_HELD, State.ORPHAN_HELD})
_BUSY_RATIO = 0.5
"""A link is looked at while the GPU works in half of the window: idle, it slows down by itself."""
_GROWTH_STEP, _GROWTH_STEPS = 300, 6
_GROWTH_RATIO = 0.002
"""Memory grows where each of six steps of 5 minutes adds 1/500 of the card (own choice): a start
that fills a card, or an allocator that settles, does not do so for half an hour."""
_IDLE_WINDOWS = 360
_RESUME_SECONDS = 120
"""A driver that is taken back has so long before its silence counts."""
_ALWAYS_READ = ("cpu", "memory", "pressure", "disk", "network")
"""Collectors that always have something to read once they have read something."""
_NAMED = ("gpu_process", "gpu", "engine", "host", "mount", "agent")


@dataclass(slots=True)
class _Card:
    """What was learned of one GPU."""

    index: str | None = None
    model: str | None = None
    blind: bool = False
    idle_watts: float | None = None
    idle: deque[tuple[float, float]] = field(default_factory=lambda: deque(maxlen=_IDLE_WINDOWS))
    growth: deque[tuple[int, float]] = field(
        default_factory=lambda: deque(maxlen=_GROWTH_STEPS + 1)
    )
    last_seen: int = 0


class Watch:
    """Turns the windows of one host, in order, into what is seen of each subject."""

    def __init__(self, *, expected_gpus: int | None = None) -> None:
        self._expected = expected_gpus
        # Durations are the rules': a window by itself is already a candidate.
        self._thresholds = replace(
            Thresholds.load(), stuck_seconds=0.0, orphan_seconds=0.0, unknown_kind_seconds=0.0
        )
        self._classifier = Classifier(self._thresholds)
        self._before: dict[int, Window] = {}
        self._cards: dict[str, _Card] = {}
        self._quiet_until = 0
        self.inventory: Inventory | None = None
        """What is known of the server; it tells what the PCIe links may be."""
        self.released = False
        """Whether the GPUs were let go on purpose: then nothing is said of them."""

    def look(self, window: Window) -> dict[Key, Seen]:
        """What the window shows. Metrics that are found here are added to its rows."""
        if self.released:
            self._quiet_until = window.end + _RESUME_SECONDS
        before = self._before.get(window.tier)
        self._before[window.tier] = window
        jobs = _jobs(window)
        states: dict[str, WindowState] = {}
        if not self.released:
            self._learn(window)
            states = self._states(window, before, jobs)
            if window.tier == 10:
                self._add_gpu_metrics(window)
                self._add_host_metrics(window, states)
        return {
            key: self._seen(key, row, states, jobs, window)
            for key, row in window.rows.items()
            if key[0] in _NAMED[1:] and not (self.released and key[0] == "gpu")
        }

    # What was learned

    def _learn(self, window: Window) -> None:
        for key, row in window.rows.items():
            if key[0] != "gpu" or not row.values.get("covered_seconds"):
                continue
            card = self._cards.setdefault(key[1], _Card())
            card.last_seen = window.end
            card.model = row.texts.get("gpu_model", card.model)
            values = row.values
            if values.get("process_count") == 0 and (
                values.get("utilization_ratio_busy_ratio", 0.0) >= 0.5
            ):
                card.blind = True  # no process is listed while kernels run: the list cannot be had
            if window.tier == 10:
                self._learn_idle(card, values)
        for gpu in self.inventory.gpus if self.inventory is not None else ():
            if gpu.uuid in self._cards and gpu.index is not None:
                self._cards[gpu.uuid].index = str(gpu.index)

    def _learn_idle(self, card: _Card, values: Mapping[str, float]) -> None:
        top, watts = values.get("utilization_ratio_max"), values.get("power_watts")
        if top is None or watts is None or top > self._thresholds.idle_utilization_ratio:
            return
        card.idle.append((watts, values.get("power_limit_watts", 0.0)))
        if len(card.idle) % 30 == 1 or card.idle_watts is None:
            columns: dict[str, list[float | None]] = {
                "power_watts": [w for w, _ in card.idle],
                "utilization_ratio_max": [0.0] * len(card.idle),
                "power_limit_watts": [limit or None for _, limit in card.idle],
            }
            n = len(card.idle)
            found = learn_idle_power(
                Frame(("gpu", ""), [0] * n, [10] * n, columns), self._thresholds
            )
            if found is not None:
                card.idle_watts = found

    # States

    def _states(
        self, window: Window, before: Window | None, jobs: Mapping[str, tuple[Job, ...]]
    ) -> dict[str, WindowState]:
        if before is not None and not 0 < window.start - before.start <= 2 * window.tier:
            before = None
        around = Surroundings(
            _host(window),
            tuple(_whole(window, key) for key in window.rows if key[0] == "disk"),
            tuple(_whole(window, key) for key in window.rows if key[0] == "mount"),
            tuple(_whole(window, key) for key in window.rows if key[0] == "nic"),
        )
        states: dict[str, WindowState] = {}
        for key, row in window.rows.items():
            if key[0] != "gpu" or not row.values.get("covered_seconds"):
                continue
            card = self._cards[key[1]]
            frame = _frame(key, [w for w in (before, window) if w is not None and key in w.rows])
            if card.blind:
                frame.columns["process_count"] = [None] * len(frame)
            kind = _kind(jobs.get(key[1], ()))
            share = self._processor_share(window, key[1])
            states[key[1]] = self._classifier.classify(
                frame,
                around,
                Jobs([kind] * len(frame), None if share is None else [share] * len(frame)),
                idle_power_watts=card.idle_watts,
            )[-1]
        return states

    def _processor_share(self, window: Window, uuid: str) -> float | None:
        cpu = self.inventory.cpu if self.inventory is not None else None
        if cpu is None or not cpu.threads:
            return None
        cores = [
            row.values["cpu_cores"]
            for key, row in window.rows.items()
            if key[:2] == ("gpu_process", uuid) and "cpu_cores" in row.values
        ]
        return sum(cores) / cpu.threads if cores else None

    # Metrics of several windows or GPUs

    def _add_gpu_metrics(self, window: Window) -> None:
        gpus = {key[1]: row for key, row in window.rows.items() if key[0] == "gpu"}
        told = any(
            row.values.get("covered_seconds") or "error" in row.texts for row in gpus.values()
        )
        present = sum(1 for u, r in gpus.items() if _whole_card(u) and r.values["covered_seconds"])
        if self._expected is not None and present >= self._expected:
            # All that were declared are there: one that is not was taken out on purpose.
            self._cards = {u: c for u, c in self._cards.items() if u in gpus}
        for uuid, card in self._cards.items():
            if uuid not in gpus and told and _whole_card(uuid):
                gpus[uuid] = window.rows["gpu", uuid] = Row({"covered_seconds": 0.0})
                if card.model is not None:
                    gpus[uuid].texts["gpu_model"] = card.model
        infos = {g.uuid: g for g in self.inventory.gpus} if self.inventory is not None else {}
        for uuid, row in gpus.items():
            covered = row.values.get("covered_seconds", 0.0)
            silent = "error" in row.texts or not covered  # a slow driver is not a lost card
            lost = max(0.0, 1.0 - covered / window.seconds) if silent else 0.0
            row.values["lost_ratio"] = lost
            if not covered:
                continue
            link = _link_ratio(row.values, infos.get(uuid))
            if link is not None:
                row.values["pcie_link_ratio"] = link
            left = self._memory_full(self._cards[uuid], row.values, window.end)
            if left is not None:
                row.values["memory_full_seconds"] = left

    def _memory_full(self, card: _Card, values: Mapping[str, float], end: int) -> float | None:
        """Seconds until memory that grew for half an hour reaches the card's."""
        used, total = values.get("memory_used_bytes_max"), values.get("memory_total_bytes")
        if used is None or not total:
            return None
        steps = card.growth
        if steps and not 0 <= end - steps[-1][0] <= 2 * _GROWTH_STEP:
            steps.clear()  # a hole, or a clock that was set back
        if not steps or end - steps[-1][0] >= _GROWTH_STEP:
            steps.append((end, used))
        if len(steps) <= _GROWTH_STEPS:
            return None
        levels = [level for _, level in steps]
        grown = [after - before for before, after in pairwise(levels)]
        if min(grown) < _GROWTH_RATIO * total:
            return None
        rate = (levels[-1] - levels[0]) / (steps[-1][0] - steps[0][0])
        return max(0.0, total - used) / rate

    def _add_host_metrics(self, window: Window, states: Mapping[str, WindowState]) -> None:
        row = window.rows.get(("host",))
        if row is None:
            return
        standby = self.inventory is not None and bool(self.inventory.standby)
        known = [s.state for s in states.values()]
        if known and State.UNKNOWN not in known and not standby:
            row.values["gpus_idle_ratio"] = sum(s in _IDLE for s in known) / len(known)
        if self._expected is not None and any(key[0] == "gpu" for key in window.rows):
            # Cards that were there and are lost have alerts of their own.
            missing = max(0, self._expected - sum(map(_whole_card, self._cards)))
            row.values["gpus_missing"] = float(missing)

    # What rules are given

    def _seen(
        self,
        key: Key,
        row: Row,
        states: Mapping[str, WindowState],
        jobs: Mapping[str, tuple[Job, ...]],
        window: Window,
    ) -> Seen:
        if key[0] == "gpu":
            card = self._cards.get(key[1], _Card())
            facts: dict[str, str] = {
                n: row.texts[n] for n in ("xid", "error", "gpu_model") if n in row.texts
            }
            if card.index is not None:
                facts["gpu_index"] = card.index
            return Seen(
                values=row.values,
                state=states.get(key[1]),
                label=f"GPU {card.index or key[1].removeprefix('index:')}",
                facts=facts,
                jobs=jobs.get(key[1], ()),
                gpus=1,
                energy_joules=row.values.get("energy_joules_total"),
            )
        if key[0] == "host":
            everyone = tuple(dict.fromkeys(job for some in jobs.values() for job in some))
            energies = [
                r.values.get("energy_joules_total") for k, r in window.rows.items() if k[0] == "gpu"
            ]
            known = [e for e in energies if e is not None]
            return Seen(
                values=row.values,
                jobs=everyone,
                gpus=len(energies),
                energy_joules=sum(known) if known and len(known) == len(energies) else None,
            )
        if key[0] == "engine":
            uuids = row.texts.get("gpu_uuids", "").replace(",", " ").split()
            of_engine = tuple(job for uuid in uuids for job in jobs.get(uuid, ()))
            name = row.texts.get("model") or row.texts.get("engine") or "engine"
            where = f"port {key[1]}" if key[1].isdigit() else key[1]
            return Seen(row.values, label=f"{name} ({where})", jobs=of_engine)
        values, told = row.values, {}
        if key[0] == "agent":
            if window.end < self._quiet_until:
                values = {n: v for n, v in values.items() if n != "gpu_sample_age_seconds"}
            ages = {n: age for n in _ALWAYS_READ if (age := values.get(f"{n}_sample_age_seconds"))}
            if ages:
                slowest = max(ages, key=lambda name: ages[name])
                row.values["collector_age_seconds"] = ages[slowest]
                values = {**values, "collector_age_seconds": ages[slowest]}
                told = {"collector": slowest}
        return Seen(values, label=key[1] if len(key) > 1 else "the agent", facts=told)

    # Over a restart

    def memory(self) -> dict[str, dict[str, object]]:
        """What must be known after a restart, as JSON values."""
        return {
            uuid: {
                "index": card.index,
                "model": card.model,
                "blind": card.blind,
                "idle_watts": card.idle_watts,
                "last_seen": card.last_seen,
            }
            for uuid, card in self._cards.items()
        }

    def restore(self, memory: object, now: float, keep_days: float = 30.0) -> None:
        """Takes up what `memory` gave, less GPUs that were not seen for `keep_days`."""
        for uuid, values in memory.items() if isinstance(memory, dict) else ():
            try:
                card = _Card(**values)
            except TypeError:
                continue
            if now - card.last_seen <= keep_days * 86_400:
                self._cards[str(uuid)] = card


def _jobs(window: Window) -> dict[str, tuple[Job, ...]]:
    found: dict[str, list[Job]] = {}
    for key, row in window.rows.items():
        if key[0] == "gpu_process":
            texts = row.texts
            found.setdefault(key[1], []).append(
                Job(
                    owner=texts.get("owner"),
                    owner_kind=texts.get("owner_kind"),
                    user=texts.get("user"),
                    workload=texts.get("workload"),
                    tool=texts.get("tool"),
                    model=texts.get("model"),
                    pid=texts.get("pid"),
                )
            )
    return {uuid: tuple(jobs) for uuid, jobs in found.items()}


def _kind(jobs: Iterable[Job]) -> Kind | None:
    """The kind of work of the GPU's processes, where they agree."""
    kinds = {job.workload for job in jobs if job.workload is not None}
    return Kind(kinds.pop()) if len(kinds) == 1 else None


def _frame(key: Key, windows: list[Window]) -> Frame:
    rows = [window.rows[key] for window in windows]
    cells = zip(*[map(row.values.get, FIELDS) for row in rows], strict=True)
    columns = {name: list(of) for name, of in zip(FIELDS, cells, strict=True)}
    starts, seconds = [w.start for w in windows], [w.seconds for w in windows]
    return Frame(key, starts, seconds, columns, [row.texts for row in rows])


def _host(window: Window) -> Frame | None:
    row = window.rows.get(("host",))
    if row is None:
        return None
    columns: dict[str, list[float | None]] = {n: [row.values.get(n)] for n in HOST_FIELDS}
    return Frame(("host",), [window.start], [window.seconds], columns, [row.texts])


def _whole(window: Window, key: Key) -> Frame:
    row = window.rows[key]
    columns: dict[str, list[float | None]] = {name: [v] for name, v in row.values.items()}
    return Frame(key, [window.start], [window.seconds], columns, [row.texts])


def _link_ratio(values: Mapping[str, float], info: GpuInfo | None) -> float | None:
    """The link now against what card and slot allow; None while idle, or where it is not known."""
    pcie = info.pcie if info is not None else None
    if pcie is None or values.get("utilization_ratio_busy_ratio", 0.0) < _BUSY_RATIO:
        return None
    now = pcie_ceiling(
        _whole_number(values, "pcie_link_generation"), _whole_number(values, "pcie_link_width")
    )
    allowed = pcie_ceiling(
        pcie.slot_max_generation or pcie.max_generation, pcie.slot_max_width or pcie.max_width
    )
    return min(1.0, now / allowed) if now and allowed else None


def _whole_card(uuid: str) -> bool:
    """Not an instance of a card (`UUID/GI/CI`), which comes and goes with its configuration."""
    return "/" not in uuid


def _whole_number(values: Mapping[str, float], name: str) -> int | None:
    value = values.get(name)
    return None if value is None else int(value)


__all__ = ["Watch"]
