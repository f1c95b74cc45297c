"""How windows lie in the store's tables: one wide row a subject and window."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from telemetry.metrics import FAMILIES, family
from telemetry.state import STATE_TEXTS
from telemetry.window import Frame, Key, Row, Window

_NO_TEXTS: Mapping[str, str] = {}
_DAY = 86_400
_MERGED = "merged_processes"
_KEPT_TEXTS = ("owner", "owner_kind", "workload", "tool", "model")


@dataclass(frozen=True, slots=True)
class OwnerDay:
    """One owner's and workload's use of one GPU on one day (UTC), once its process rows are
    merged: `texts` say whose, `seconds` is the time that its processes were seen, added up."""

    day: int
    gpu_uuid: str
    texts: Mapping[str, str]
    seconds: float
    memory_bytes: float
    memory_bytes_max: float


class Rows:
    """Reads and writes windows through an open connection; transactions are the caller's."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._columns = {
            f.measurement: {
                row[1] for row in connection.execute(f"PRAGMA table_info(m_{f.measurement})")
            }
            for f in FAMILIES
        }
        self._scales = {f.measurement: f.scales() for f in FAMILIES}
        self._host_ids: dict[str, int] = {}
        self._series_ids: dict[tuple[int, Key], int] = {}
        self._texts_ids: dict[str, int] = {}
        self._insertions: dict[
            tuple[str, tuple[str, ...]], tuple[str, list[tuple[str, float]]]
        ] = {}

    # Writing

    def forget(self) -> None:
        """Drops the ids that are remembered, since a rolled-back transaction may have made them."""
        self._host_ids.clear()
        self._series_ids.clear()
        self._texts_ids.clear()

    def host_id(self, name: str) -> int:
        """The id of a host, made where it is new."""
        known = self._host_ids.get(name)
        if known is None:
            self._connection.execute("INSERT OR IGNORE INTO host (name) VALUES (?)", (name,))
            known = self._find_host(name)
            assert known is not None
            self._host_ids[name] = known
        return known

    def insert(self, window: Window) -> None:
        """Adds a window; an older one of the same host, tier and start goes."""
        connection = self._connection
        host_id = self.host_id(window.host)
        old = connection.execute(
            "SELECT window_id FROM window WHERE host_id = ? AND tier = ? AND start = ?",
            (host_id, window.tier, window.start),
        ).fetchone()
        if old is not None:
            self._delete([old[0]])
        window_id = connection.execute(
            "INSERT INTO window (host_id, tier, start, seconds) VALUES (?, ?, ?, ?)",
            (host_id, window.tier, window.start, window.seconds),
        ).lastrowid
        for key, row in window.rows.items():
            statement, scales = self._insertion(key[0], tuple(row.values))
            connection.execute(
                statement,
                (
                    window_id,
                    self._series_id(host_id, key),
                    self._texts_id(row.texts),
                    *[_whole(row.values[name] * scale) for name, scale in scales],
                ),
            )

    def _insertion(
        self, measurement: str, names: tuple[str, ...]
    ) -> tuple[str, list[tuple[str, float]]]:
        """The statement that keeps a row of these fields, and the scale of each that is kept.

        Most windows of a subject have the same fields: the statements are remembered.
        """
        known = self._insertions.get((measurement, names))
        if known is None:
            columns, scales = self._columns[measurement], self._scales[measurement]
            kept = [(name, scales[name]) for name in names if name in columns]
            fields = ", ".join(["window_id, series_id, texts_id", *(name for name, _ in kept)])
            marks = ", ".join("?" * (len(kept) + 3))
            known = f"INSERT INTO m_{measurement} ({fields}) VALUES ({marks})", kept
            if len(self._insertions) >= 32:
                self._insertions.clear()
            self._insertions[measurement, names] = known
        return known

    def prune(self, tier: int, before: float, limit: int) -> list[int]:
        """Deletes the oldest windows of a tier that ended before a time."""
        ids = [
            row[0]
            for row in self._connection.execute(
                "SELECT window_id FROM window WHERE tier = ? AND start + seconds <= ?"
                " ORDER BY window_id LIMIT ?",
                (tier, before, limit),
            )
        ]
        self._delete(ids)
        return ids

    def merge_processes(self, before: float, limit: int) -> int:
        """See `Store.merge_processes`; the day's rows grow as its windows become old enough."""
        connection = self._connection
        done = connection.execute(
            "SELECT position FROM cursor WHERE name = ?", (_MERGED,)
        ).fetchone()
        heads = connection.execute(
            "SELECT window_id, host_id, start FROM window WHERE window_id > ? AND tier = 300"
            " AND start + seconds <= ? ORDER BY window_id LIMIT ?",
            (done[0] if done else 0, before, limit),
        ).fetchall()
        for window_id, host_id, start in heads:
            rows = connection.execute(
                "SELECT key, content, covered_seconds, memory_bytes FROM m_gpu_process"
                " JOIN series USING (series_id) LEFT JOIN texts USING (texts_id)"
                " WHERE window_id = ?",
                (window_id,),
            ).fetchall()
            for key, content, covered, memory in rows:
                said = json.loads(content) if content else {}
                texts = {n: said[n] for n in _KEPT_TEXTS if n in said}
                self._add_to_day(
                    host_id,
                    start // _DAY * _DAY,
                    json.loads(key)[1],
                    texts,
                    (
                        (covered or 0) / self._scales["gpu_process"]["covered_seconds"],
                        (memory or 0) / self._scales["gpu_process"]["memory_bytes"],
                    ),
                )
            connection.execute("DELETE FROM m_gpu_process WHERE window_id = ?", (window_id,))
        if heads:
            connection.execute(
                "INSERT INTO cursor VALUES (?, ?)"
                " ON CONFLICT (name) DO UPDATE SET position = excluded.position",
                (_MERGED, heads[-1][0]),
            )
        return len(heads)

    def _add_to_day(
        self, host_id: int, day: int, gpu: str, texts: Mapping[str, str], used: tuple[float, float]
    ) -> None:
        seconds, memory = used
        self._connection.execute(
            "INSERT INTO owner_day VALUES (?, ?, ?, ?, ?, ?, ?)"
            " ON CONFLICT DO UPDATE SET seconds = seconds + excluded.seconds,"
            " memory_byte_seconds = memory_byte_seconds + excluded.memory_byte_seconds,"
            " memory_bytes_max = max(memory_bytes_max, excluded.memory_bytes_max)",
            (
                host_id,
                day,
                gpu,
                json.dumps(texts, sort_keys=True),
                seconds,
                seconds * memory,
                memory,
            ),
        )

    def _delete(self, window_ids: Sequence[int]) -> None:
        parameters = [(i,) for i in window_ids]
        for f in FAMILIES:
            self._connection.executemany(
                f"DELETE FROM m_{f.measurement} WHERE window_id = ?", parameters
            )
        self._connection.executemany("DELETE FROM window WHERE window_id = ?", parameters)

    def _series_id(self, host_id: int, key: Key) -> int:
        known = self._series_ids.get((host_id, key))
        if known is None:
            text = json.dumps(key)
            self._connection.execute(
                "INSERT OR IGNORE INTO series (host_id, key) VALUES (?, ?)", (host_id, text)
            )
            known = self._connection.execute(
                "SELECT series_id FROM series WHERE host_id = ? AND key = ?", (host_id, text)
            ).fetchone()[0]
            self._series_ids[host_id, key] = known
        return known

    def _texts_id(self, texts: Mapping[str, str]) -> int | None:
        if not texts:
            return None
        content = json.dumps(texts, sort_keys=True)
        known = self._texts_ids.get(content)
        if known is None:
            self._connection.execute("INSERT OR IGNORE INTO texts (content) VALUES (?)", (content,))
            known = self._connection.execute(
                "SELECT texts_id FROM texts WHERE content = ?", (content,)
            ).fetchone()[0]
            if len(self._texts_ids) > 4096:  # 50,000 process ids in a day must not stay in memory
                self._texts_ids.clear()
            self._texts_ids[content] = known
        return known

    # Reading

    def hosts(self) -> list[str]:
        return [r[0] for r in self._connection.execute("SELECT name FROM host ORDER BY name")]

    def _find_host(self, name: str) -> int | None:
        row = self._connection.execute(
            "SELECT host_id FROM host WHERE name = ?", (name,)
        ).fetchone()
        return None if row is None else int(row[0])

    def span(self, host: str, tier: int) -> tuple[int, int] | None:
        row = self._connection.execute(
            "SELECT min(start), max(start + seconds) FROM window"
            " WHERE host_id = (SELECT host_id FROM host WHERE name = ?) AND tier = ?",
            (host, tier),
        ).fetchone()
        return None if row[0] is None else (row[0], row[1])

    def owner_days(self, host: str, since: float, until: float) -> list[OwnerDay]:
        try:
            rows = self._connection.execute(
                "SELECT day, gpu_uuid, texts, seconds, memory_byte_seconds, memory_bytes_max"
                " FROM owner_day WHERE host_id = (SELECT host_id FROM host WHERE name = ?)"
                " AND day >= ? AND day < ? ORDER BY day, gpu_uuid, texts",
                (host, since, until),
            ).fetchall()
        except sqlite3.OperationalError:  # a store from before days were merged
            return []
        return [
            OwnerDay(day, gpu, json.loads(texts), seconds, held / seconds if seconds else 0.0, most)
            for day, gpu, texts, seconds, held, most in rows
        ]

    def windows_between(self, position: int, through: int) -> int:
        return int(
            self._connection.execute(
                "SELECT count(*) FROM window WHERE window_id > ? AND window_id <= ?",
                (position, through),
            ).fetchone()[0]
        )

    def position_after(self, position: int, count: int) -> int:
        row = self._connection.execute(
            "SELECT window_id FROM window WHERE window_id > ? ORDER BY window_id LIMIT 1 OFFSET ?",
            (position, max(0, count - 1)),
        ).fetchone()
        return self.last_window_id() if row is None else int(row[0])

    def first_since(self, time: float) -> int:
        row = self._connection.execute(
            "SELECT window_id FROM window WHERE start + seconds > ? ORDER BY window_id LIMIT 1",
            (time,),
        ).fetchone()
        return self.last_window_id() if row is None else int(row[0]) - 1

    def last_window_id(self) -> int:
        return int(
            self._connection.execute("SELECT coalesce(max(window_id), 0) FROM window").fetchone()[0]
        )

    def frames(
        self,
        host: str,
        measurement: str,
        tier: int,
        *,
        since: float,
        until: float,
        fields: Sequence[str],
        texts: bool,
    ) -> list[Frame]:
        host_id = self._find_host(host)
        if host_id is None:
            return []
        declared = family(measurement).fields()
        for name in fields:
            if name not in declared:
                raise KeyError(f"{measurement} has no field {name}")
        present = [f for f in fields if f in self._columns[measurement]]
        keys = self._keys(host_id)
        contents: dict[int | None, Mapping[str, str]] = {None: _NO_TEXTS}
        scales = [self._scales[measurement][f] for f in present]
        frames: dict[int, Frame] = {}
        cursor = self._connection.execute(
            f"SELECT start, seconds, series_id, texts_id{''.join(f', {n}' for n in present)}"
            f" FROM window CROSS JOIN m_{measurement} USING (window_id)"
            " WHERE host_id = ? AND tier = ? AND start >= ? AND start < ? ORDER BY start",
            (host_id, tier, since, until),
        )
        for start, seconds, series_id, texts_id, *cells in cursor:
            frame = frames.get(series_id)
            if frame is None:
                frame = frames[series_id] = Frame(keys[series_id], columns={f: [] for f in fields})
            frame.start.append(start)
            frame.seconds.append(seconds)
            if texts:
                said = contents.get(texts_id)
                if said is None:
                    said = contents[texts_id] = {
                        name: text
                        for name, text in self._text(texts_id).items()
                        if (measurement, name) not in STATE_TEXTS
                    }
                frame.texts.append(said)
            for name, scale, cell in zip(present, scales, cells, strict=True):
                frame.columns[name].append(None if cell is None else cell / scale)
        for frame in frames.values():
            for name in fields:
                if name not in present:
                    frame.columns[name] = [None] * len(frame.start)
        return sorted(frames.values(), key=lambda f: f.key)

    def windows_after(
        self, position: int, limit: int, through: int | None
    ) -> list[tuple[int, Window]]:
        heads = self._connection.execute(
            "SELECT window_id, host_id, name, tier, start, seconds FROM window"
            " JOIN host USING (host_id) WHERE window_id > ? AND window_id <= ?"
            " ORDER BY window_id LIMIT ?",
            (position, 2**62 if through is None else through, limit),
        ).fetchall()
        windows = {i: Window(name, tier, start, s, {}) for i, _, name, tier, start, s in heads}
        if not windows:
            return []
        contents: dict[int | None, Mapping[str, str]] = {None: _NO_TEXTS}
        keys = {k: v for host_id in {h[1] for h in heads} for k, v in self._keys(host_id).items()}
        for f in FAMILIES:
            scales = self._scales[f.measurement]
            names = [n for n in f.fields() if n in self._columns[f.measurement]]
            columns = "".join(f", {n} / {float(scales[n])!r}" for n in names)
            rows = self._connection.execute(
                f"SELECT window_id, series_id, texts_id{columns} FROM m_{f.measurement}"
                " WHERE window_id > ? AND window_id <= ?",
                (position, heads[-1][0]),
            )
            for window_id, series_id, texts_id, *cells in rows:
                if texts_id not in contents:
                    contents[texts_id] = self._text(texts_id)
                windows[window_id].rows[keys[series_id]] = Row(
                    {n: c for n, c in zip(names, cells, strict=True) if c is not None},
                    dict(contents[texts_id]),
                )
        return list(windows.items())

    def _keys(self, host_id: int) -> dict[int, Key]:
        rows = self._connection.execute(
            "SELECT series_id, key FROM series WHERE host_id = ?", (host_id,)
        )
        return {series_id: tuple(json.loads(key)) for series_id, key in rows}

    def _text(self, texts_id: int) -> Mapping[str, str]:
        row = self._connection.execute(
            "SELECT content FROM texts WHERE texts_id = ?", (texts_id,)
        ).fetchone()
        return _NO_TEXTS if row is None else json.loads(row[0])


def _whole(scaled: float) -> int | float:
    """A whole number, where SQLite has one as large."""
    return round(scaled) if abs(scaled) < 2.0**62 else scaled
