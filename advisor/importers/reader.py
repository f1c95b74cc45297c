"""Reads log files into a `Log`: header or none, identity of the GPU, time, values."""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, tzinfo
from pathlib import Path

from advisor.errors import AdvisorError
from advisor.importers import cells
from advisor.importers.columns import Column, ColumnMap, Layout, Role
from advisor.importers.dealing import Ambiguous, deal
from advisor.importers.recognise import recognise
from advisor.importers.recording import Facts, Log, Place, Recording, Track
from advisor.importers.table import Line, Table

PROCESSES: Place = ("gpu_process", "processes")
"""Where the command lines of a row are kept, as the log has them."""

SECONDS: Place = ("", "seconds")
"""Where a row says itself how long it is."""

_UNNAMED = "?"
_BUS = "bus:"
_INDEX = re.compile(r"(?:gpu|nvidia)?[ _:#-]*(\d{1,3})", re.IGNORECASE)
_UUID = re.compile(r"(?:GPU|MIG)-.+")
_TELLING = 200
_REMEMBERED = 20_000
_TELLS = (Role.MODEL, Role.BUS_ID, Role.INDEX, Role.FACT)


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line tells of the files.

    `uuid` gives the key of the GPU at an index of a host. `start` is the Unix time of the first
    row of files without a time column, `zone` that of times which name none (None: UTC).
    """

    uuid: Callable[[str, int], str]
    host: str | None = None
    gpus: int | None = None
    interval: float | None = None
    start: float | None = None
    zone: tzinfo | None = None
    columns: tuple[str, ...] | None = None


class FileReader:
    """Reads one file into the log. `number` is its place among the files."""

    def __init__(
        self, path: Path, number: int, log: Log, options: Options, columns: ColumnMap
    ) -> None:
        self._path = path
        self._number = number
        self._log = log
        self._options = options
        self._map = columns
        self._host = options.host or path.name.split(".")[0]
        self._zone = options.zone or UTC
        self._layout: Layout | None = None
        # Each column of numbers, where its values go, and what its texts were read as.
        self._readings: list[tuple[Column, Place, dict[str, float | None]]] = []
        self._pending: list[Line] = []
        self._shortest = 1 << 30
        self._ordinal = 0
        self._poll: dict[str, int] = {}
        self._polls = 0
        self._earlier: dict[tuple[str, str | None], list[float]] = {}
        self._told_gpus = options.gpus

    def read(self, progress: Callable[[int], None] | None = None) -> None:
        """Raises AdvisorError where the file cannot be used at all."""
        with closing(Table(self._path, progress).lines()) as lines:
            for line in lines:
                if line.fault is not None:
                    self._unreadable(line, line.fault)
                elif self._is_header(line.cells):
                    self._use_or_complain(line)
                elif self._layout is None:
                    self._before_header(line)
                else:
                    self._row(line, self._layout)
        if self._layout is None:
            self._recognise()
        for recording in self._log.recordings.values():
            self._deal(recording)
            self._shift(recording)

    # The header

    def _is_header(self, row: list[str]) -> bool:
        written = self._map.written
        return not any(cells.looks_numeric(c, written) for c in row) and any(
            self._map.knows(c) for c in row
        )

    def _use_or_complain(self, line: Line) -> None:
        """A header; one that cannot be used ends the import only where there is none before."""
        try:
            self._use(line.cells)
        except AdvisorError:
            if self._layout is None:
                raise
            self._unreadable(line, "names columns, but no time with a value")

    def _use(self, titles: list[str]) -> None:
        layout = self._map.layout(titles)
        if not any(c.role in (Role.VALUE, Role.TEXT, Role.PROCESSES) for c in layout.columns):
            raise AdvisorError(
                f"{self._path}: none of its columns is one that Talla knows: {', '.join(titles)}"
            )
        if layout.having(Role.TIME) is None and self._options.interval is None:
            raise AdvisorError(
                f"{self._path}: has no time column; tell the seconds between two readings with"
                " --interval"
            )
        self._log.unknown(layout.unknown)
        self._layout = layout
        self._readings = [
            (c, SECONDS if c.role is Role.SECONDS else (c.measurement, c.name), {})
            for c in layout.columns
            if c.role in (Role.VALUE, Role.SECONDS)
        ]

    def _before_header(self, line: Line) -> None:
        if self._options.columns is not None:
            self._use(list(self._options.columns))
            assert self._layout is not None
            self._row(line, self._layout)
            return
        self._pending.append(line)
        if len(self._pending) >= _TELLING:
            self._recognise()

    def _recognise(self) -> None:
        """Takes the lines read so far as the beginning of a log without a header."""
        if not self._pending:
            return
        written = self._map.written
        data = [
            line
            for line in self._pending
            if len(line.cells) > 1 and any(cells.looks_numeric(c, written) for c in line.cells)
        ]
        titles = recognise([line.cells for line in data], written)
        if not any(self._map.knows(t) for t in titles if t not in ("timestamp", "index")):
            raise AdvisorError(
                f"{self._path}: line 1 is no header with a column that Talla knows; if the log was"
                " written with noheader, tell its columns as they were queried:"
                " --columns timestamp,index,utilization.gpu,..."
            )
        named = [t or f"(column {i})" for i, t in enumerate(titles, 1)]
        self._log.note(
            f"{self._path}: no header; its columns were taken for {', '.join(named)}"
            " (tell them with --columns if that is wrong)"
        )
        self._use(titles)
        assert self._layout is not None
        self._log.unknown(
            [f"column {i} of {self._path.name}" for i, t in enumerate(titles, 1) if not t]
        )
        pending, self._pending = self._pending, []
        for line in pending:
            self._row(line, self._layout)

    # A row

    def _row(self, line: Line, layout: Layout) -> None:
        row = line.cells
        self._ordinal += 1
        if len(row) > layout.width and not any(row[layout.width :]):
            row = row[: layout.width]
        if len(row) != layout.width:
            self._unreadable(line, f"has {len(row)} cells where {layout.width} are expected")
            return
        self._mind_the_end(line, row)
        uses: dict[Role, Column] = {c.role: c for c in layout.columns}
        host = row[uses[Role.HOST].place] if Role.HOST in uses else ""
        host = host if host and not cells.absent(host) else self._host
        values, texts = self._values(line, row, layout)
        key = self._key(host, row, uses, values)
        if key == "":
            self._unreadable(line, "does not say which GPU it is of")
            return
        try:
            time = self._time(row, uses.get(Role.TIME), key)
        except ValueError:
            self._unreadable(line, f"{row[uses[Role.TIME].place]!r} is no time")
            return
        recording = self._log.recording(host)
        if key is not None:
            _tell(recording.facts.setdefault(key, Facts()), row, layout)
        if Role.COUNT in uses and self._options.gpus is None:
            count = row[uses[Role.COUNT].place]
            self._told_gpus = int(count) if count.isdigit() else self._told_gpus
        self._log.rows += 1
        self._place(recording, key, time, values, texts)

    def _mind_the_end(self, line: Line, row: list[str]) -> None:
        """The last cell of a line that was cut short may be half a number."""
        if not line.ended and len(row[-1]) < self._shortest:
            row[-1] = ""
        elif row[-1]:
            self._shortest = min(self._shortest, len(row[-1]))

    def _values(
        self, line: Line, row: list[str], layout: Layout
    ) -> tuple[dict[Place, float], dict[Place, str]]:
        values: dict[Place, float] = {}
        texts: dict[Place, str] = {}
        error = ""
        for column, place, read in self._readings:
            text = row[column.place]
            if text not in read:
                if len(read) >= _REMEMBERED:
                    read.clear()
                try:
                    read[text] = cells.number(text, column, self._map.written)
                except ValueError as reason:
                    self._log.cells.add(
                        f"{self._path}: line {line.number}, {column.title}: {text!r} {reason}"
                    )
                    continue
            value = read[text]
            if value is not None:
                old = values.get(place) if column.join else None
                values[place] = value if old is None else max(old, value)
            elif "error" in text.lower() or "lost" in text.lower():
                error = text.strip("[]")
        for column in layout.columns:
            if column.role in (Role.TEXT, Role.PROCESSES):
                text = row[column.place]
                if not cells.absent(text):
                    is_text = column.role is Role.TEXT
                    texts[(column.measurement, column.name) if is_text else PROCESSES] = text
        if error and not any(p[0] == "gpu" for p in values):
            texts["gpu", "error"] = error
        return values, texts

    def _key(
        self,
        host: str,
        row: list[str],
        uses: Mapping[Role, Column],
        values: Mapping[Place, float],
    ) -> str | None:
        """The GPU's key, None for a row of the host alone, `?` unnamed, empty where unreadable."""

        def cell(role: Role) -> str:
            text = row[uses[role].place] if role in uses else ""
            return "" if cells.absent(text) else text

        if uuid := cell(Role.UUID):
            return uuid
        if index := cell(Role.INDEX):
            if _UUID.fullmatch(index):
                return index
            match = _INDEX.fullmatch(index.removesuffix(".0"))
            return self._options.uuid(host, int(match[1])) if match else ""
        if bus := cell(Role.BUS_ID):
            return _BUS + bus.lower()
        measured = {place[0] for place in values} - {""}
        if "gpu" not in measured and (measured or Role.UUID in uses):
            return None
        return "" if Role.INDEX in uses and Role.UUID not in uses else _UNNAMED

    def _time(self, row: list[str], column: Column | None, key: str | None) -> float:
        if column is not None:
            time, assumed = cells.instant(row[column.place], self._zone)
            if assumed and self._options.zone is None:
                self._log.note("times name no zone and were taken as UTC; --timezone tells another")
            return time
        # No time column: a poll ends where a GPU comes again.
        interval = self._options.interval or 1.0
        if key == _UNNAMED:
            poll = (self._ordinal - 1) // (self._told_gpus or 1)
        else:
            name = key or ""
            poll = self._poll[name] = max(self._poll.get(name, -1) + 1, self._polls)
        self._polls = max(self._polls, poll)
        return poll * interval

    def _place(
        self,
        recording: Recording,
        key: str | None,
        time: float,
        values: Mapping[Place, float],
        texts: Mapping[Place, str],
    ) -> None:
        track = recording.track(key)
        if self._number and key != _UNNAMED:
            # A rotated log may repeat the end of the one before it.
            earlier = self._earlier.get((recording.host, key))
            if earlier is None:
                pairs = zip(track.times, track.files, strict=True)
                earlier = sorted(t for t, f in pairs if f != self._number)
                self._earlier[recording.host, key] = earlier
            at = bisect_left(earlier, time)
            if at < len(earlier) and earlier[at] == time:
                self._log.duplicates += 1
                self._log.rows -= 1
                return
        track.add(time, self._number, values, texts)

    def _unreadable(self, line: Line, reason: str) -> None:
        self._log.lines.add(f"{self._path}: line {line.number} {reason}")

    # After the last row

    def _deal(self, recording: Recording) -> None:
        """Gives the rows that name no GPU to the GPUs, in the order of each poll."""
        unnamed = recording.tracks.pop(_UNNAMED, None)
        facts = recording.facts.pop(_UNNAMED, Facts())
        if unnamed is None:
            return
        try:
            count, places = deal(unnamed.times, self._told_gpus)
        except Ambiguous:
            raise AdvisorError(
                f"{self._path}: its rows do not say which GPU they are of; tell how many there are"
                " with --gpus"
            ) from None
        if self._options.gpus is None:
            self._log.note(
                f"{self._path}: its rows name no GPU; they were taken for {count}"
                f" GPU{'s' * (count > 1)}, in order (--gpus tells another number)"
            )
        for i, place in enumerate(places):
            if place is None:
                self._log.lines.add(
                    f"{self._path}: a reading of fewer or more than {count} rows; their GPUs"
                    " cannot be told"
                )
                self._log.rows -= 1
            else:
                key = self._options.uuid(recording.host, place)
                known = recording.facts.setdefault(key, Facts(index=place))
                known.model = known.model or facts.model
                self._place(recording, key, unnamed.times[i], *unnamed.row(i))

    def _shift(self, recording: Recording) -> None:
        """Gives rows without a time the time of the recording."""
        if self._layout is None or self._layout.having(Role.TIME) is not None:
            return
        interval = self._options.interval or 1.0
        start = self._options.start
        if start is None:
            start = math.floor(self._path.stat().st_mtime - (self._polls + 1) * interval)
            self._log.note(
                f"{self._path}: has no times; it was taken to end when the file was last written"
                " (--start tells when it began)"
            )
        for track in recording.tracks.values():
            for i in range(len(track) - 1, -1, -1):
                if track.files[i] != self._number:
                    break
                track.times[i] += start


def _tell(facts: Facts, row: list[str], layout: Layout) -> None:
    """Keeps what a row says of the card itself."""
    for column in layout.columns:
        text = row[column.place]
        if column.role not in _TELLS or cells.absent(text):
            continue
        if column.role is Role.MODEL:
            facts.model = text
        elif column.role is Role.BUS_ID:
            facts.bus_id = text
        elif (
            column.role is Role.INDEX
            and facts.index is None
            and (match := _INDEX.fullmatch(text.removesuffix(".0")))
        ):
            facts.index = int(match[1])
        elif column.role is Role.FACT:
            if column.name == "compute_capability":
                facts.compute_capability = text
            elif text.isdigit():
                setattr(facts, column.name, int(text))


def name_by_bus(recording: Recording, uuid: Callable[[str, int], str]) -> None:
    """Numbers the GPUs of which only the PCI bus id is known, in order of it."""
    keys = sorted(k for k in recording.tracks if k is not None and k.startswith(_BUS))
    for index, key in enumerate(keys):
        track: Track = recording.tracks.pop(key)
        name = uuid(recording.host, index)
        track.uuid = name
        recording.tracks[name] = track
        facts = recording.facts.pop(key, Facts())
        facts.index = index
        recording.facts[name] = facts
