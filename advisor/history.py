"""The only reader of windows: the local stores now, InfluxDB beside them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Protocol

from telemetry.closed import Closed
from telemetry.event import Event
from telemetry.inventory import Inventory
from telemetry.store import OwnerDay, StoreReader
from telemetry.window import Frame, Key

TIER = 300
"""All that is decided rests on 5-minute windows."""
_DAY = 86_400


class History(Protocol):
    """The 5-minute windows, inventories and events of any number of hosts."""

    def hosts(self) -> list[str]:
        """Every host, by name."""

    def span(self, host: str) -> tuple[int, int] | None:
        """First second and end of the host's 5-minute windows, None where there are none."""

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
        """5-minute windows that begin in [since, until), a frame a subject."""

    def inventory(self, host: str) -> Inventory | None:
        """The newest inventory of a host, None where none was kept."""

    def inventories(
        self, host: str, *, since: float, until: float
    ) -> list[tuple[float, Inventory]]:
        """What the host was over [since, until): the inventory in force at `since` and each later
        one, with the time it holds from, oldest first. The newest where none was kept by then."""

    def events(self, host: str, *, since: float, until: float) -> list[Event]:
        """The host's events, in order."""

    def owner_days(self, host: str, *, since: float, until: float) -> list[OwnerDay]:
        """Who used the GPUs on the days that touch [since, until) and whose rows of processes
        were merged."""


class LocalHistory(Closed):
    """One or several local stores, each of any number of hosts, read as one history.

    Where two stores hold the same window of a host, the store named first is believed.
    """

    def __init__(self, paths: Iterable[str | Path]) -> None:
        """Opens the stores. Raises StoreError for one that cannot be read."""
        self._readers: list[StoreReader] = []
        try:
            for path in dict.fromkeys(Path(p) for p in paths):
                self._readers.append(StoreReader(path))
            self._hosts: dict[str, list[StoreReader]] = {}
            for reader in self._readers:
                for host in reader.hosts():
                    self._hosts.setdefault(host, []).append(reader)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Lets go of the files."""
        for reader in self._readers:
            reader.close()

    def hosts(self) -> list[str]:
        return sorted(self._hosts)

    def span(self, host: str) -> tuple[int, int] | None:
        spans = [s for r in self._hosts.get(host, ()) if (s := r.span(host, TIER)) is not None]
        return (min(s[0] for s in spans), max(s[1] for s in spans)) if spans else None

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
        found: dict[Key, list[Frame]] = {}
        for reader in self._hosts.get(host, ()):
            for frame in reader.frames(
                host, measurement, TIER, since=since, until=until, fields=fields, texts=texts
            ):
                found.setdefault(frame.key, []).append(frame)
        return [_merged(found[key]) for key in sorted(found)]

    def inventory(self, host: str) -> Inventory | None:
        newest: tuple[float, StoreReader] | None = None
        for reader in self._hosts.get(host, ()):
            if reader.inventory(host) is not None:
                span = reader.span(host, TIER)
                end = float(span[1]) if span is not None else 0.0
                if newest is None or end > newest[0]:
                    newest = end, reader
        if newest is None:
            return None
        from advisor.inventories import from_store  # pydantic is loaded only where it is needed

        document = newest[1].inventory(host)
        return None if document is None else from_store(document, newest[1].path)

    def inventories(
        self, host: str, *, since: float, until: float
    ) -> list[tuple[float, Inventory]]:
        found = [
            (time, document, reader.path)
            for reader in self._hosts.get(host, ())
            for time, document in reader.inventories(host, until=until)
        ]
        found.sort(key=lambda entry: entry[0])
        if not found:
            newest = self.inventory(host)
            return [] if newest is None else [(since, newest)]
        from advisor.inventories import from_store  # pydantic is loaded only where it is needed

        first = max((i for i, entry in enumerate(found) if entry[0] <= since), default=0)
        return [(time, from_store(document, path)) for time, document, path in found[first:]]

    def events(self, host: str, *, since: float, until: float) -> list[Event]:
        found = [
            event
            for reader in self._hosts.get(host, ())
            for _, event in reader.events(host, since=since, until=until)
        ]
        return sorted(found, key=lambda e: e.time) if len(self._hosts.get(host, ())) > 1 else found

    def owner_days(self, host: str, *, since: float, until: float) -> list[OwnerDay]:
        found: dict[tuple[int, str], list[OwnerDay]] = {}
        for reader in self._hosts.get(host, ()):
            mine: dict[tuple[int, str], list[OwnerDay]] = {}
            for day in reader.owner_days(host, since=since - _DAY + 1, until=until):
                mine.setdefault((day.day, day.gpu_uuid), []).append(day)
            found = {**mine, **found}
        return [day for key in sorted(found) for day in found[key]]


def _merged(frames: list[Frame]) -> Frame:
    """One frame of several of the same subject, in order of time."""
    if len(frames) == 1:
        return frames[0]
    places: dict[int, tuple[Frame, int]] = {}
    for frame in frames:
        for i, start in enumerate(frame.start):
            places.setdefault(start, (frame, i))
    ordered = [places[start] for start in sorted(places)]
    return Frame(
        frames[0].key,
        start=[f.start[i] for f, i in ordered],
        seconds=[f.seconds[i] for f, i in ordered],
        columns={n: [f.columns[n][i] for f, i in ordered] for n in frames[0].columns},
        texts=[f.texts[i] for f, i in ordered if f.texts],
    )
