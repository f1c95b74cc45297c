"""What the advisor tells of a recording, or of a simulated server that it may not read whole."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from advisor.evaluation.recordings import Recording
from advisor.history import LocalHistory
from advisor.importers.run import Request, import_logs
from advisor.observe import observe
from advisor.period import period
from advisor.phase import SERVING_PHASES, TRAINING_PHASES, Phase
from telemetry.simulation import history as simulated
from telemetry.simulation import load_scenario
from telemetry.store import Store
from telemetry.window import Frame

_NOT_WORK = frozenset({Phase.IDLE, Phase.UNKNOWN})
_START = 1_772_323_200
_EVER = 1e9


def told_of(recording: Recording) -> frozenset[Phase]:
    """The phases of work that are told of any of its GPUs, through a real import."""
    with tempfile.TemporaryDirectory() as folder:
        path = recording.write(Path(folder))
        store = Path(folder) / "recording.db"
        import_logs(Request((path,), store, gpu_model=recording.card))
        with LocalHistory([store]) as history:
            found: set[Phase] = set()
            for host in history.hosts():
                whole = period(history, host, _EVER)
                if whole is not None:
                    seen = observe(history, host, whole)
                    found |= {s.phase for t in seen.gpus.values() for s in t.segments}
    return frozenset(found - _NOT_WORK)


class _Blind(LocalHistory):
    """A store of which no process and no engine is read, and of a GPU only some columns."""

    def __init__(self, path: Path, hidden: Sequence[str]) -> None:
        super().__init__([path])
        self._hidden = (*hidden, "process_", "job_")

    def frames(
        self,
        host: str,
        measurement: str,
        *,
        since: float,
        until: float,
        fields: Sequence[str],
        texts: bool = False,
    ) -> list[Frame]:
        if measurement in ("gpu_process", "engine"):
            return []
        found = super().frames(
            host, measurement, since=since, until=until, fields=fields, texts=texts
        )
        for frame in found:
            for name in frame.columns:
                if name.startswith(self._hidden):
                    frame.columns[name] = [None] * len(frame)
        return found


def simulated_seconds(scenario_name: str, hidden: Sequence[str]) -> Counter[str]:
    """GPU-seconds of a simulated day by outcome, against what its processes say. `hidden` are the
    beginnings of the names of columns that are not read.
    """
    scenario = load_scenario(scenario_name)
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "simulated.db"
        inventory = scenario.inventory()
        with Store(path) as store:
            store.append(
                list(simulated(scenario, _START, 1.0)),
                inventories=[(float(_START), inventory.host, inventory.to_json())],
            )
        bare = replace(inventory, purpose=None, pinned_phases=(), workloads=(), model=None)
        with LocalHistory([path]) as whole, _Blind(path, hidden) as blind:
            (host,) = whole.hosts()
            span = period(whole, host, _EVER)
            assert span is not None
            truth, told = observe(whole, host, span), observe(blind, host, span, bare)
            for uuid, timeline in truth.gpus.items():
                known = [s for s in timeline.segments if s.phase not in _NOT_WORK]
                for segment in told.gpus[uuid].segments:
                    for true in known:
                        shared = min(segment.end, true.end) - max(segment.start, true.start)
                        if shared > 0 and segment.phase is not Phase.IDLE:
                            counts[_outcome(true.phase, segment.phase)] += shared
    return counts


def _outcome(true: Phase, told: Phase) -> str:
    if told is Phase.UNKNOWN:
        return "abstained"
    family = TRAINING_PHASES if true in TRAINING_PHASES else SERVING_PHASES
    return "broader" if told in family else "wrong"
