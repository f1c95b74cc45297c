"""docs/evaluation.md: how well phases are told, as figures that anybody can make again."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path

from advisor.classifier.table import shipped
from advisor.evaluation.heldout import COLUMN_SETS, held_out
from advisor.evaluation.judging import simulated_seconds, told_of
from advisor.evaluation.recordings import (
    Recording,
    changes,
    compatible,
    poor,
    read_folder,
    without_card,
)
from advisor.phase import Phase
from advisor.phase_thresholds import PhaseThresholds
from telemetry.simulation import shipped_scenarios

_OUTCOMES = ("right", "broader", "abstained", "wrong")
_WAYS: tuple[tuple[str, Callable[[Recording], Recording]], ...] = (
    ("all columns", lambda r: r),
    ("utilisation and power alone", poor),
    ("all columns, card not named", without_card),
    ("utilisation and power, card not named", lambda r: poor(without_card(r))),
)
_HIDDEN: dict[str, tuple[str, ...]] = {
    "all columns": (),
    "without activity counters and links": ("sm_", "tensor_", "dram_", "pcie_", "nvlink_"),
    "utilisation and power": ("sm_", "tensor_", "dram_", "pcie_", "nvlink_", "memory_"),
}


def page(folder: Path, command: str, progress: Callable[[str], None]) -> str:
    """The whole page. Raises AdvisorError for a folder without recordings, or one without truth."""
    recordings = read_folder(folder)
    parts = [
        (
            f"# How well phases are told\n\nWritten by `{command}` on {datetime.now(UTC):%Y-%m-%d}."
            " It says how often the phase of a GPU's work is right, broader but right (`inference`"
            " for a language model's, `training_or_finetuning` for a training), not told, or"
            " wrong.\n"
        ),
        "\n".join(_real(recordings, progress)),
        "\n".join(_changed(recordings, progress)),
        "\n".join(_regression(progress)),
        resources.files("advisor.evaluation").joinpath("moved.md").read_text("utf-8"),
        "\n".join(_hashes(sorted(folder.glob("*.csv")))),
    ]
    return "\n".join(parts)


def _real(recordings: Sequence[Recording], progress: Callable[[str], None]) -> Iterator[str]:
    yield "## Recordings of real runs\n"
    yield (
        "Public logs of real runs, judged by telemetry alone, through `talla-advisor import` with"
        " `--gpu-model` (or without, where the card is not named: its power limit is then unknown)."
        " None of them is in the training table. They are not part of the project: `TALLA_TRACES`"
        " or the command's argument names their folder, and without it the tests that use them"
        " skip.\n"
    )
    yield "| recording | " + " | ".join(way for way, _ in _WAYS) + " |"
    yield "|---" * (len(_WAYS) + 1) + "|"
    counts: dict[str, Counter[str]] = {way: Counter() for way, _ in _WAYS}
    for recording in recordings:
        cells = []
        for way, change in _WAYS:
            progress(f"{recording.name}: {way}")
            told = told_of(change(recording))
            outcome = recording.outcome(told)
            counts[way][outcome] += 1
            cells.append(f"{outcome} ({_phases(told)})")
        yield f"| {recording.name} | " + " | ".join(cells) + " |"
    for outcome in _OUTCOMES:
        cells = [f"**{counts[way][outcome]} of {len(recordings)}**" for way, _ in _WAYS]
        yield f"| **{outcome}** | " + " | ".join(cells) + " |"
    yield ""


def _changed(recordings: Sequence[Recording], progress: Callable[[str], None]) -> Iterator[str]:
    yield "## The same recordings, changed\n"
    yield (
        "A change that does not touch what the run is: the phase must stay, broaden or become"
        " unknown. `appeared` is a right phase that the whole recording did not show.\n"
    )
    yield "| change | stays | becomes unknown | appeared | another |"
    yield "|---|---|---|---|---|"
    counts: dict[str, Counter[str]] = {}
    for recording in recordings:
        before = told_of(recording)
        for change, changed in changes(recording):
            progress(f"{recording.name}: {change}")
            after = told_of(changed)
            if not compatible(before, after, recording):
                result = "another"
            elif after == before:
                result = "stays"
            else:
                result = "becomes unknown" if not after else "appeared"
            kind = change if not change.startswith(("without ", "with ")) else change.split()[0]
            named = {"without": "one column removed", "with": "one column added"}.get(kind, kind)
            counts.setdefault(named, Counter())[result] += 1
    for named, found in counts.items():
        cells = [
            str(found[result]) for result in ("stays", "becomes unknown", "appeared", "another")
        ]
        yield f"| {named} | " + " | ".join(cells) + " |"
    total = sum(found["another"] for found in counts.values())
    yield f"\nAnother phase: **{total}** of {sum(c.total() for c in counts.values())} changes.\n"


def _regression(progress: Callable[[str], None]) -> Iterator[str]:
    yield "## Regression figures on simulated work\n"
    yield (
        "These are no measure of how often phases are right on other people's servers: the same"
        " project wrote the simulator. They show what a change of ours does.\n"
    )
    yield (
        "A simulated day of each shipped scenario, its processes and engines hidden, GPU-hours"
        " at work by outcome (right or broader / not told / wrong):\n"
    )
    yield "| scenario | " + " | ".join(_HIDDEN) + " |"
    yield "|---" * (len(_HIDDEN) + 1) + "|"
    for scenario in shipped_scenarios():
        progress(f"scenario {scenario}")
        cells = []
        for hidden in _HIDDEN.values():
            counts = simulated_seconds(scenario, hidden)
            hours = [counts[o] / 3600 for o in ("broader", "abstained", "wrong")]
            cells.append(" / ".join(f"{h:.0f}" for h in hours))
        yield f"| {scenario} | " + " | ".join(cells) + " |"
    sure_at = PhaseThresholds.load().answer_probability
    yield (
        "\nThe classifier alone, on rows of its training table that it was not fitted to, told at"
        f" a probability of {sure_at}:\n"
    )
    yield "| columns | right | not told | wrong | neither, and told all the same |"
    yield "|---|---|---|---|---|"
    table = shipped()
    for name, columns in COLUMN_SETS.items():
        progress(f"held-out rows: {name}")
        s = held_out(table, columns, sure_at)
        yield f"| {name} | {s.right} | {s.abstained} | {s.wrong} | {s.neither_told} |"
    yield ""


def _hashes(paths: Sequence[Path]) -> Iterator[str]:
    yield "## What it was made of\n"
    yield "| file | SHA-256 |"
    yield "|---|---|"
    for path in paths:
        yield f"| {path.name} | `{hashlib.sha256(path.read_bytes()).hexdigest()}` |"
    for package, name in (
        ("advisor.classifier", "generator.toml"),
        ("advisor.classifier", "table.csv"),
        ("advisor", "phases.toml"),
    ):
        content = resources.files(package).joinpath(name).read_bytes()
        yield f"| {package.replace('.', '/')}/{name} | `{hashlib.sha256(content).hexdigest()}` |"
    yield ""


def _phases(told: frozenset[Phase]) -> str:
    return ", ".join(sorted(told)) or "nothing told"
