"""Runs the list of healthy but awkward work (`cases/healthy.toml`) and prints it as Markdown.

python -m tests.states.awkward > docs/states-cases.md
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from telemetry.aggregate import Aggregator
from telemetry.signals import Signals
from telemetry.states import Classifier, Jobs, State, Surroundings, WindowState
from telemetry.window import TIERS, Key, Sample, Window
from telemetry.workload import Kind, Signatures
from tests.states.stage import START, frames_of

LIST = Path(__file__).parent / "cases" / "healthy.toml"
KEYS: dict[str, Key] = {
    "gpu": ("gpu", "GPU-0"),
    "host": ("host",),
    "disk": ("disk", "nvme0n1"),
    "nic": ("nic", "eth0"),
    "engine": ("engine", "8000"),
}
_NEVER = ("starved", "stuck", "orphan_held")


@dataclass(frozen=True)
class Case:
    """A line of the list."""

    name: str
    why: str
    command: str | None
    expected: frozenset[State]
    causes: frozenset[str]
    never: frozenset[State]
    control: bool
    idle_watts: float
    seconds: tuple[Mapping[str, Mapping[str, float]], ...]
    """Of each second the rows by measurement."""

    @property
    def kind(self) -> Kind | None:
        match = None if self.command is None else Signatures.load().match(self.command)
        return None if match is None else match.kind

    def windows(self) -> list[Window]:
        """The windows of both tiers, made by the real aggregator; whole ones only."""
        aggregator = Aggregator("host", Signals.load())
        made: list[Window] = []
        for second, rows in enumerate(self.seconds):
            mine = {KEYS[name]: dict(values) for name, values in rows.items() if values}
            made += aggregator.add(Sample(START + second, mine))
        return [w for w in (*made, *aggregator.flush()) if w.seconds == w.tier]

    def states(self) -> dict[int, list[WindowState]]:
        """By tier the state of each window."""
        windows = self.windows()
        found: dict[int, list[WindowState]] = {}
        for tier in TIERS:
            frames = frames_of(w for w in windows if w.tier == tier)
            gpu = frames[KEYS["gpu"]]
            disks, nics = (
                tuple(f for k, f in frames.items() if k[0] == name) for name in ("disk", "nic")
            )
            found[tier] = Classifier().classify(
                gpu,
                Surroundings(frames.get(KEYS["host"]), disks, nics=nics),
                Jobs([self.kind] * len(gpu)),
                idle_power_watts=self.idle_watts,
            )
        return found

    def wrong(self, states: Mapping[int, list[WindowState]]) -> list[str]:
        """What the states have that the list does not allow."""
        found = [
            f"5 minutes: {state.state}, {state.cause}: {'; '.join(state.evidence)}"
            for state in states[300]
            if state.state not in self.expected
            or (state.cause not in (None, "unknown") and state.cause not in self.causes)
        ]
        found += [
            f"10 seconds: {state.state}, {state.cause}: {'; '.join(state.evidence)}"
            for state in states[10]
            if state.state in self.never and state.cause not in self.causes
        ]
        return list(dict.fromkeys(found))


def cases() -> list[Case]:
    """The list, in its order."""
    data = tomllib.loads(LIST.read_text("utf-8"))
    return [_case(data["card"][entry["card"]], entry) for entry in data["case"]]


def _case(card: Mapping[str, Any], entry: Mapping[str, Any]) -> Case:
    allowed = frozenset(State(name) for name in entry["expected"])
    return Case(
        name=entry["name"],
        why=entry["why"],
        command=entry.get("command"),
        expected=allowed,
        causes=frozenset(entry.get("causes", ())),
        never=frozenset(State(name) for name in entry.get("never", _NEVER)),
        control=entry.get("control", False),
        idle_watts=card["idle_watts"],
        seconds=tuple(_seconds(card, entry)),
    )


def _seconds(card: Mapping[str, Any], entry: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    lacks = set(entry.get("lacks", ()))
    facts = {name: value for name, value in card["gpu"].items() if name not in lacks}
    for segment in entry["segment"]:
        cycle = [step for step in segment["cycle"] for _ in range(step["seconds"])]
        for second in range(segment["seconds"]):
            step = cycle[second % len(cycle)]
            rows = {name: {**entry["always"].get(name, {}), **step.get(name, {})} for name in KEYS}
            share = second / segment["seconds"]
            grown = {
                name: low + share * (high - low)
                for name, (low, high) in segment.get("grow", {}).items()
            }
            rows["gpu"] = {**facts, **rows["gpu"], **grown}
            yield rows


def page() -> str:
    """The list and its states as a Markdown page."""
    lines = [_HEAD]
    for case in cases():
        states = case.states()
        counts = Counter(str(s.state) for s in states[300])
        told = ", ".join(f"`{name}` {count}" for name, count in counts.items())
        extra = sorted({str(s.cause) for s in states[300] if s.cause is not None})
        notes = sorted({str(s.note) for s in states[300] if s.note is not None})
        verdict = "wrong" if case.wrong(states) else "as expected"
        wanted = " or ".join(f"`{s}`" for s in sorted(case.expected))
        beside = ", ".join((*extra, *notes)) or "-"
        lines.append(f"| {case.name} | {case.why} | {wanted} | {told} | {beside} | {verdict} |")
    return "\n".join(lines) + "\n"


_HEAD = """\
# Healthy but awkward work, and its states

Generated by `python -m tests.states.awkward` from `tests/states/cases/healthy.toml`: each case is
staged second by second, made into windows by the agent's own aggregator, and judged by the
advisor's own rules. The list was written before its author had read or run those rules, from
[the metrics](metrics.md), the definitions of the states and the published thresholds behind them.
It is not a measure of how often the states are right on other people's servers. The last three
lines are not healthy: they show that the list can fail.

`beside` is what the windows say besides their state: a cause that is told and not called starvation
(`unknown`: gaps were seen, and nothing of the host explains them), or why memory is held. Windows
of 10 seconds must not say starved, stuck or orphan_held either.

The first run had 32 of 34 as expected, and 34 since. The two others:

- *a reading of 100 % while the driver starts* was `busy`. A rare reading of use while no process is
  listed and no memory held is now taken for the driver's own; where the list of processes cannot be
  believed (it was seen empty while the GPU worked), a reading of use counts as before.
- *short checkpoints* was `busy` in every 5-minute window as expected, and `starved` by
  `checkpointing` in the 10-second windows inside the checkpoint. That is what those ten seconds
  were; the list had forbidden it, and now allows there the causes that the case may tell.

| work | why it is awkward | may be | 5-minute windows | beside | |
|---|---|---|---|---|---|"""


if __name__ == "__main__":
    print(page(), end="")
