"""What a store holds and what InfluxDB has, in one shape that can be compared."""

from pathlib import Path

from agent.shipping.line_protocol import TIER_TAGS, WINDOW_SECONDS
from telemetry.metrics import FAMILIES, Family
from telemetry.store import StoreReader
from tests.servers.influxdb import InfluxDB

Point = dict[str, float | str]
Points = dict[tuple[object, ...], Point]
"""By measurement, host, tier's tag, subject and time in nanoseconds: the fields."""

STATE_TEXTS = ("state", "cause")


def stored(path: Path) -> Points:
    """Every row of every window of a store."""
    found: Points = {}
    with StoreReader(path) as store:
        for _, window in store.windows_after(0, 1_000_000):
            for key, row in window.rows.items():
                time = window.start * 10**9
                fields: Point = dict(row.values)
                fields[WINDOW_SECONDS] = float(window.seconds)
                # A GPU's state is told on shipping and not kept; a process' is kept.
                fields |= {
                    name: text
                    for name, text in row.texts.items()
                    if key[0] != "gpu" or name not in STATE_TEXTS
                }
                found[key[0], window.host, TIER_TAGS[window.tier], key[1:], time] = fields
    return found


def arrived(server: InfluxDB, *databases: str) -> Points:
    """Every point of the measurements of windows."""
    found: Points = {}
    for database in databases:
        for family in FAMILIES:
            for series in server.query(
                f'SELECT * FROM "{family.measurement}" GROUP BY *', database
            ):
                tags = dict(series.tags)
                subject = tuple(tags[name] for name in family.tags)
                labels: Point = {name: tags[name] for name in family.labels if tags.get(name)}
                for record in series.records():
                    time = record.pop("time")
                    place = (family.measurement, tags["host"], tags["window"], subject, time)
                    assert place not in found, f"two points of {place}"
                    found[place] = labels | _fields(family, record)
    return found


def _fields(family: Family, record: dict[str, float | str | bool | int | None]) -> Point:
    fields: Point = {}
    for name, value in record.items():
        if family.measurement == "gpu" and name in STATE_TEXTS:
            continue
        assert isinstance(value, int | float | str)
        fields[name] = value
    return fields
