"""Recordings of real runs, what they are known to be, and the same runs changed a little.

A recording is a CSV log that `talla-advisor import` reads. Its name tells the truth of it: `train`,
`finetune` or `infer` comes first, the card second (`train_h100x8_anything.csv`).
"""

from __future__ import annotations

import csv
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from advisor.errors import AdvisorError
from advisor.phase import FINETUNING_PHASES, SERVING_PHASES, TRAINING_PHASES, Phase

_TRUTHS = {
    "train": Phase.TRAINING,
    "finetune": Phase.FINETUNING,
    "infer": Phase.LLM_INFERENCE,
}
_BROADER = {
    Phase.TRAINING: frozenset({Phase.TRAINING_OR_FINETUNING}),
    Phase.FINETUNING: frozenset({Phase.TRAINING_OR_FINETUNING}),
    Phase.LLM_INFERENCE: frozenset({Phase.INFERENCE}),
}
_CARDS = {"h100": "NVIDIA H100 80GB HBM3", "a100": "NVIDIA A100-SXM4-80GB"}
_TIME, _GPU = "timestamp", "gpu"
_POOR = frozenset({_TIME, _GPU, "power_w", "gpu_util_pct", "sm_util_pct"})
_SEED = 20_261_201


@dataclass(frozen=True, slots=True)
class Recording:
    """One log in memory. `card` is the name to import it with, None to leave it unknown."""

    name: str
    truth: Phase
    card: str | None
    header: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]

    def write(self, folder: Path) -> Path:
        """Writes it as CSV; returns where."""
        path = folder / f"{self.name}.csv"
        with path.open("w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(self.header)
            writer.writerows(self.rows)
        return path

    def outcome(self, told: frozenset[Phase]) -> str:
        """`right`, `broader`, `abstained` or `wrong`, of the phases told of any of its GPUs."""
        if not told:
            return "abstained"
        right = FINETUNING_PHASES if self.truth is Phase.FINETUNING else frozenset({self.truth})
        if told - right - _BROADER[self.truth]:
            return "wrong"
        return "right" if told <= right else "broader"


def read_folder(folder: Path) -> list[Recording]:
    """Every recording of a folder. Raises AdvisorError for a name that tells no truth."""
    try:
        paths = sorted(path for path in folder.iterdir() if path.suffix == ".csv")
    except OSError as error:
        raise AdvisorError(f"{folder}: cannot be read ({error.strerror})") from None
    if not paths:
        raise AdvisorError(f"{folder}: there is no recording (*.csv) in it")
    found = []
    for path in paths:
        kind, _, rest = path.stem.partition("_")
        card = next((name for part, name in _CARDS.items() if rest.startswith(part)), None)
        if kind not in _TRUTHS or card is None:
            raise AdvisorError(
                f"{path}: its name must begin with the phase and the card, such as"
                f" train_h100x8_run.csv (phases: {', '.join(_TRUTHS)}; cards: {', '.join(_CARDS)})"
            )
        with path.open(newline="") as file:
            header, *rows = [tuple(row) for row in csv.reader(file)]
        found.append(Recording(path.stem, _TRUTHS[kind], card, header, rows))
    return found


def poor(recording: Recording) -> Recording:
    """Utilisation and power alone."""
    return _with_columns(recording, [name in _POOR for name in recording.header])


def without_card(recording: Recording) -> Recording:
    """With no card named, so that its power limit is not known."""
    return replace(recording, card=None)


def changes(recording: Recording) -> Iterator[tuple[str, Recording]]:
    """The run with one thing changed that must not make it another phase."""
    r = recording
    gpus = sorted({row[r.header.index(_GPU)] for row in r.rows}) if _GPU in r.header else []
    if len(gpus) > 1:
        turned = dict(zip(gpus, gpus[3:] + gpus[:3], strict=True))
        yield "GPUs permuted", _with_cells(r, {_GPU: lambda cell: turned[cell]})
    if gpus:
        yield "GPUs renamed", _with_cells(r, {_GPU: lambda cell: str(int(float(cell)) + 20)})
    dice = random.Random(_SEED)
    yield "a fifth of the rows dropped", replace(r, rows=[x for x in r.rows if dice.random() > 0.2])
    half = len(r.rows) // 2
    yield "first half", replace(r, rows=r.rows[:half])
    yield "second half", replace(r, rows=r.rows[half:])
    memory = [name for name in r.header if name in ("mem_used_mib", "mem_total_mib")]
    for factor in (0.5, 2.0) if memory else ():
        scaled = dict.fromkeys(memory, _times(factor))
        yield f"card memory times {factor:g}", _with_cells(r, scaled)
    for name in r.header:
        if name not in (_TIME, _GPU):
            yield f"without {name}", _with_columns(r, [n != name for n in r.header])
    for name, cell in (("temp_c", "60"), ("fan_pct", "40"), ("somebodys_note", "7")):
        if name not in r.header:
            more = [(*row, cell) for row in r.rows]
            yield f"with {name}", replace(r, header=(*r.header, name), rows=more)


def _times(factor: float) -> Callable[[str], str]:
    return lambda cell: str(float(cell) * factor) if cell else cell


def _with_columns(recording: Recording, keep: Sequence[bool]) -> Recording:
    def kept(row: Sequence[str]) -> tuple[str, ...]:
        return tuple(cell for cell, wanted in zip(row, keep, strict=True) if wanted)

    return replace(
        recording, header=kept(recording.header), rows=[kept(row) for row in recording.rows]
    )


def _with_cells(recording: Recording, change: Mapping[str, Callable[[str], str]]) -> Recording:
    how = [change.get(name) for name in recording.header]
    rows = [
        tuple(cell if f is None else f(cell) for cell, f in zip(row, how, strict=True))
        for row in recording.rows
    ]
    return replace(recording, rows=rows)


def compatible(before: frozenset[Phase], after: frozenset[Phase], recording: Recording) -> bool:
    """Whether what is told of a changed run stays, broadens or becomes unknown, or is what the
    run is known to be: never another phase.
    """
    family = TRAINING_PHASES if recording.truth in TRAINING_PHASES else SERVING_PHASES
    return after <= (before | _BROADER[recording.truth] | {recording.truth}) & family
