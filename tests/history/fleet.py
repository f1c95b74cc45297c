"""A fleet in a real InfluxDB: many servers with the windows of a simulated one each.

    python -m tests.history.fleet SERVERS [SERVERS ...] [--days DAYS]

loads so many, then times `talla-advisor report --influx` without and with digests, each in a
process of its own, with its peak of memory; then loads up to the next number.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import urllib3

from agent.shipping.line_protocol import inventory_line, window_lines
from bench.measure import memory, tree
from telemetry.simulation import history, load_scenario
from tests.servers.influxdb import InfluxDB

START = 1_700_006_400
SCENARIOS = ("training", "training_few_cores", "finetuning", "chatbot")
HOST = b"THEHOST"
SETTLE_SECONDS = 20.0  # what was loaded at once is compacted for a while
LOADING = {
    "GOGC": "400",
    "INFLUXDB_DATA_CACHE_SNAPSHOT_MEMORY_SIZE": "256m",
    "INFLUXDB_DATA_CACHE_MAX_MEMORY_SIZE": "4g",
}
"""Spares InfluxDB work while it is loaded; it is measured as it is by default."""


def lines_of(scenario: str, days: float) -> list[bytes]:
    """The 5-minute windows of a server that is named by a placeholder, in pieces of some MB."""
    simulated = load_scenario(scenario)
    name = simulated.inventory().host.encode()
    found = [
        line
        for window in history(simulated, START, days)
        if window.tier == 300
        for line in window_lines(window)
    ]
    document = simulated.inventory().to_json()
    found.append(inventory_line(START, simulated.inventory().host, document))
    uuids = [gpu.uuid.encode() for gpu in simulated.inventory().gpus]
    pieces = []
    for first in range(0, len(found), 5000):
        text = b"\n".join(found[first : first + 5000]).replace(name, HOST)
        for uuid in uuids:
            text = text.replace(uuid, b"GPU-" + HOST + uuid[-4:])
        pieces.append(text)
    return pieces


def load(influxdb: InfluxDB, database: str, first: int, servers: int, days: float) -> int:
    """Writes servers `first` to `first + servers`; returns how many points."""
    influxdb.query(f'CREATE DATABASE "{database}"')
    templates = [lines_of(scenario, days) for scenario in SCENARIOS]
    url = f"{influxdb.url}/write?db={database}&precision=ns"
    pool = urllib3.PoolManager(maxsize=2)

    def write(number: int) -> int:
        points = 0
        for piece in templates[number % len(templates)]:
            text = piece.replace(HOST, b"node-%04d" % number)
            answer = pool.request("POST", url, body=text, timeout=120)
            if answer.status != 204:
                raise RuntimeError(answer.data.decode())
            points += text.count(b"\n") + 1
        return points

    with ThreadPoolExecutor(2) as writers:
        return sum(writers.map(write, range(first, first + servers)))


@dataclass(frozen=True)
class Timed:
    """One report: seconds, those of processors (ours, InfluxDB's), the peak bytes of all its
    processes together (PSS, looked at twice a second), and for how many servers it is."""

    seconds: float
    ours: float
    influxdb: float
    peak: int
    servers: int

    def __str__(self) -> str:
        return (
            f"{self.seconds:.1f} s ({self.ours:.1f} s of processors for us,"
            f" {self.influxdb:.1f} s for InfluxDB), {self.peak / 2**20:.0f} MiB for all its"
            f" processes, {self.servers} servers; load of the machine {os.getloadavg()[0]:.1f}"
        )


def timed(influxdb: InfluxDB, database: str, folder: Path) -> Timed:
    """A full report, HTML and JSON, of all servers there."""
    config = folder / "advisor.toml"
    config.write_text(f"[service]\nstate = '{folder}/advisor.db'\n[influx]\ntimeout_seconds = 60\n")
    before = time.monotonic(), _own_cpu(), cpu(influxdb)
    command: list[str | Path] = [
        *(sys.executable, "-m", "advisor.cli", "report", "-o", folder / "report"),
        *("--config", config, "--influx", f"{influxdb.url}?db={database}"),
    ]
    peak = 0.0
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        while process.poll() is None:
            peak = max(peak, memory(tree(process.pid))[0])
            time.sleep(0.5)
        said = process.stdout.read()
    assert process.returncode == 0
    after = time.monotonic(), _own_cpu(), cpu(influxdb)
    written = [Path(line) for line in said.splitlines()]
    (document,) = (path for path in written if path.suffix == ".json")
    assert any(path.suffix == ".html" and path.stat().st_size for path in written)
    seconds, ours, theirs = (b - a for a, b in zip(before, after, strict=True))
    return Timed(
        seconds,
        ours,
        theirs,
        int(peak),
        len(json.loads(document.read_text())["servers"]),
    )


def _own_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def cpu(influxdb: InfluxDB) -> float:
    """Seconds of processors that the server has used since it was started."""
    times = Path(f"/proc/{influxdb.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(times[11]) + int(times[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def loading(influxdb: InfluxDB) -> Iterator[None]:
    """Runs the server as loading it is cheapest; afterwards as it is by default."""
    os.environ.update(LOADING)
    try:
        influxdb.process.stop()
        influxdb.process.start()
        yield
    finally:
        for name in LOADING:
            del os.environ[name]
    time.sleep(SETTLE_SECONDS)
    influxdb.process.stop()
    influxdb.process.start()


def main() -> None:
    """Prints what was measured."""
    parser = argparse.ArgumentParser()
    parser.add_argument("servers", type=int, nargs="+")
    parser.add_argument("--days", type=float, default=7.0)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "influxdb").mkdir()
        influxdb = InfluxDB.launch(folder / "influxdb")
        there = 0
        try:
            for servers in asked.servers:
                with loading(influxdb):
                    began = time.monotonic()
                    points = load(influxdb, "fleet", there, servers - there, asked.days)
                    print(
                        f"{servers - there} servers, {points} points, loaded in"
                        f" {time.monotonic() - began:.0f} s ({time.process_time():.0f} s of"
                        f" processors for us, {cpu(influxdb):.0f} s for InfluxDB)",
                        flush=True,
                    )
                there = servers
                (folder / "advisor.db").unlink(missing_ok=True)
                for how in ("first", "with digests"):
                    print(f"{servers}, {how}: {timed(influxdb, 'fleet', folder)}", flush=True)
        finally:
            influxdb.process.stop()


if __name__ == "__main__":
    main()
