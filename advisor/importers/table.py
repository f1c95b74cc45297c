"""A log file as lines of cells: compression, encoding, delimiter, and a last line cut short."""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

from advisor.errors import AdvisorError

_MARKS = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))
_DELIMITERS = ",;\t"


@dataclass(frozen=True, slots=True)
class Line:
    """One line: its number, its cells without surrounding blanks, whether it was ended."""

    number: int
    cells: list[str]
    ended: bool
    fault: str | None = None


class Table:
    """Reads one file. `progress` is told the bytes read so far."""

    def __init__(self, path: Path, progress: Callable[[int], None] | None = None) -> None:
        self.path = path
        self._progress = progress
        self._ended = True
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
        first = next(source, None)
        if first is None:
            return
        delimiter = max(_DELIMITERS, key=first.count) if first.strip() else ","
        reader = csv.reader(
            _again(first, source), delimiter=delimiter, skipinitialspace=True, strict=False
        )
        while True:
            fault = None
            try:
                cells = [c.strip() for c in next(reader)]
            except StopIteration:
                break
            except csv.Error as error:
                cells, fault = [], str(error)
            if delimiter == ";":  # where the comma is the decimal point
                cells = [_with_point(c) for c in cells]
            if fault is not None or any(cells):
                yield Line(reader.line_num, cells, self._ended, fault)
        if self._cut:
            yield Line(reader.line_num, [], False, "is the last: the compressed file ends there")

    def _physical(self, text: io.TextIOWrapper, raw: BinaryIO) -> Iterator[str]:
        number = 0
        try:
            for line in text:
                number += 1
                self._ended = line.endswith(("\n", "\r"))
                if self._progress is not None and number % 2000 == 0:
                    self._progress(raw.tell())
                yield line
        except (EOFError, zlib.error, gzip.BadGzipFile):
            # A compressed log that was cut: what came out of it so far is good, its last line not.
            self._ended = False
            self._cut = True


def _again(first: str, rest: Iterator[str]) -> Iterator[str]:
    yield first
    yield from rest


def _with_point(cell: str) -> str:
    whole, comma, fraction = cell.partition(",")
    if comma and whole.lstrip("+-").isdigit() and fraction[:1].isdigit():
        return f"{whole}.{fraction}"
    return cell
