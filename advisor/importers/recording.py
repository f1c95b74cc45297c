"""What was read from logs, by host and GPU, in columns: a week of eight GPUs must fit in memory."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

Place = tuple[str, str]
"""A measurement and one of its fields, texts or tags."""


class Cells:
    """Numbers by row; a row may have none."""

    __slots__ = ("_present", "_values")

    def __init__(self) -> None:
        self._values = array("d")
        self._present = bytearray()

    def put(self, row: int, value: float) -> None:
        short = row + 1 - len(self._values)
        if short > 0:
            self._values.extend([0.0] * short)
            self._present.extend(bytes(short))
        self._values[row] = value
        self._present[row] = 1

    def get(self, row: int) -> float | None:
        if row < len(self._present) and self._present[row]:
            return self._values[row]
        return None

    def present(self) -> Iterator[float]:
        """The numbers that are there."""
        return (v for v, p in zip(self._values, self._present, strict=True) if p)


class Texts:
    """Texts by row; equal ones are kept once."""

    __slots__ = ("_rows",)

    def __init__(self) -> None:
        self._rows: list[str | None] = []

    def put(self, row: int, text: str) -> None:
        short = row + 1 - len(self._rows)
        if short > 0:
            self._rows.extend([None] * short)
        self._rows[row] = text

    def get(self, row: int) -> str | None:
        return self._rows[row] if row < len(self._rows) else None


@dataclass(slots=True)
class Track:
    """The rows of one GPU, or of the host alone where `uuid` is None, as they came."""

    uuid: str | None
    times: array[float] = field(default_factory=lambda: array("d"))
    files: array[int] = field(default_factory=lambda: array("H"))
    values: dict[Place, Cells] = field(default_factory=dict)
    texts: dict[Place, Texts] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.times)

    def add(
        self,
        time: float,
        file: int,
        values: Mapping[Place, float],
        texts: Mapping[Place, str],
    ) -> None:
        """Adds a row."""
        row = len(self.times)
        self.times.append(time)
        self.files.append(file)
        for place, value in values.items():
            cells = self.values.get(place)
            if cells is None:
                cells = self.values[place] = Cells()
            cells.put(row, value)
        for place, text in texts.items():
            column = self.texts.get(place)
            if column is None:
                column = self.texts[place] = Texts()
            column.put(row, text)

    def row(self, i: int) -> tuple[dict[Place, float], dict[Place, str]]:
        """Numbers and texts of one row."""
        values = {p: v for p, c in self.values.items() if (v := c.get(i)) is not None}
        texts = {p: t for p, c in self.texts.items() if (t := c.get(i)) is not None}
        return values, texts

    def largest(self, place: Place) -> float | None:
        """The largest number of a column, None where there is none."""
        cells = self.values.get(place)
        return max(cells.present(), default=None) if cells is not None else None


@dataclass(slots=True)
class Facts:
    """What a log tells of a card for the inventory, the newest of each."""

    index: int | None = None
    model: str | None = None
    bus_id: str | None = None
    compute_capability: str | None = None
    max_generation: int | None = None
    max_width: int | None = None
    slot_max_generation: int | None = None


@dataclass(slots=True)
class Recording:
    """One host: the rows of each GPU by its key, and what is known of the cards.

    `engines` are the GPUs that share each GPU's inference engine, where the log does not name it.
    """

    host: str
    tracks: dict[str | None, Track] = field(default_factory=dict)
    facts: dict[str, Facts] = field(default_factory=dict)
    engines: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def track(self, uuid: str | None) -> Track:
        """The rows of a GPU, begun where it is new."""
        found = self.tracks.get(uuid)
        if found is None:
            found = self.tracks[uuid] = Track(uuid)
        return found


@dataclass(slots=True)
class Complaints:
    """What could not be used of a kind: how often, and the first time."""

    count: int = 0
    first: str = ""

    def add(self, text: str) -> None:
        """Counts one; keeps the words of the first."""
        self.count += 1
        self.first = self.first or text


@dataclass(slots=True)
class Log:
    """All that was read, and all that could not be."""

    recordings: dict[str, Recording] = field(default_factory=dict)
    rows: int = 0
    lines: Complaints = field(default_factory=Complaints)
    cells: Complaints = field(default_factory=Complaints)
    duplicates: int = 0
    unknown_columns: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def recording(self, host: str) -> Recording:
        """The recording of a host, begun where it is new."""
        found = self.recordings.get(host)
        if found is None:
            found = self.recordings[host] = Recording(host)
        return found

    def note(self, text: str) -> None:
        """Says something once."""
        if text not in self.notes:
            self.notes.append(text)

    def unknown(self, titles: Sequence[str]) -> None:
        """Names columns that are not used, each once."""
        self.unknown_columns += [t for t in dict.fromkeys(titles) if t not in self.unknown_columns]
