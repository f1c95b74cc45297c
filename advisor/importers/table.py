"""A log file as lines of cells: compression, encoding, delimiter, and a last line cut short."""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections import deque
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

from advisor.errors import AdvisorError

_MARKS = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))
_DELIMITERS = ",;\t"
_LONGEST_LINE = 1 << 20
_LINES_OF_A_CELL = 8


@dataclass(frozen=True, slots=True)
class Line:
    """One line: its number, its cells without surrounding blanks, whether it was ended."""

    number: int
    cells: list[str]
    ended: bool
    fault: str | None = None


@dataclass(frozen=True, slots=True)
class _Physical:
    """What lies between two line breaks."""

    number: int
    text: str
    ended: bool


class Table:
    """Reads one file. `progress` is told the bytes read so far."""

    def __init__(self, path: Path, progress: Callable[[int], None] | None = None) -> None:
        self.path = path
        self._progress = progress
        self._cut = False

    def lines(self) -> Generator[Line, None, None]:
        """The lines that are not blank. Raises AdvisorError where the file cannot be read."""
        try:
            with self.path.open("rb") as raw:
                yield from self._parsed(raw)
        except OSError as error:
            reason = error.strerror or str(error)
            raise AdvisorError(f"{self.path}: cannot be read ({reason})") from None

    def _parsed(self, raw: BinaryIO) -> Iterator[Line]:
        head = raw.read(4)
        raw.seek(0)
        stream = raw
        if head[:2] == b"\x1f\x8b":
            stream = cast("BinaryIO", gzip.GzipFile(fileobj=raw))
            head = b""
        encoding = next((e for mark, e in _MARKS if head.startswith(mark)), "utf-8-sig")
        with io.TextIOWrapper(stream, encoding=encoding, errors="replace", newline="") as text:
            yield from self._cells(text, raw)

    def _cells(self, text: io.TextIOWrapper, raw: BinaryIO) -> Iterator[Line]:
        source = self._physical(text, raw)
        waiting: deque[_Physical] = deque()
        delimiter = ""
        number = 0
        while (line := waiting.popleft() if waiting else next(source, None)) is not None:
            number = line.number
            if not line.text.strip():
                continue
            delimiter = delimiter or max(_DELIMITERS, key=line.text.count)
            fault = None
            if '"' in line.text:
                joined = _joined(line, waiting, source)
                line = joined or line
                row, fault = _quoted(line.text, delimiter)
                if joined is None:
                    fault = "has a quotation mark that nothing closes"
            else:
                row = line.text.split(delimiter)
            cells = [c.strip() for c in row]
            if delimiter == ";":  # where the comma is the decimal point
                cells = [_with_point(c) for c in cells]
            if fault is not None or any(cells):
                yield Line(number, cells, line.ended, fault)
        if self._cut:
            yield Line(number, [], False, "is the last: the compressed file ends there")

    def _physical(self, text: io.TextIOWrapper, raw: BinaryIO) -> Iterator[_Physical]:
        number = 0
        try:
            while line := text.readline(_LONGEST_LINE):
                number += 1
                if self._progress is not None and number % 2000 == 0:
                    self._progress(raw.tell())
                yield _Physical(number, line, line.endswith(("\n", "\r")))
        except (EOFError, zlib.error, gzip.BadGzipFile):
            # A compressed log that was cut: what came out of it so far is good.
            self._cut = True


def _joined(
    line: _Physical, waiting: deque[_Physical], source: Iterator[_Physical]
) -> _Physical | None:
    """The line with those after it that its quotation marks take in; None if they never close.

    Only a few lines are tried, so that one stray mark does not swallow the rest of a log.
    """
    text, ended = line.text, line.ended
    taken = 0
    while text.count('"') % 2:
        if taken == _LINES_OF_A_CELL:
            return None
        while len(waiting) <= taken:
            following = next(source, None)
            if following is None:
                return None
            waiting.append(following)
        text += waiting[taken].text
        ended = waiting[taken].ended
        taken += 1
    for _ in range(taken):
        waiting.popleft()
    return _Physical(line.number, text, ended)


def _quoted(text: str, delimiter: str) -> tuple[list[str], str | None]:
    """The cells of a line with quotation marks (RFC 4180), or what is wrong with it."""
    try:
        return next(csv.reader([text], delimiter=delimiter, skipinitialspace=True), []), None
    except csv.Error as error:
        return [], f"is no CSV ({error})"


def _with_point(cell: str) -> str:
    whole, comma, fraction = cell.partition(",")
    if comma and whole.lstrip("+-").isdigit() and fraction[:1].isdigit():
        return f"{whole}.{fraction}"
    return cell
