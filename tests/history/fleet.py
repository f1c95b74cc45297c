"""A fleet in a real InfluxDB: many servers with the windows of a simulated one each.

    python -m tests.history.fleet SERVERS [DAYS]

loads them, then times `talla-advisor findings --influx` without and with digests, each in a
process of its own, with its peak of memory.
"""

from __future__ import annotations

import gzip
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import urllib3

from agent.shipping.line_protocol import inventory_line, window_lines
from telemetry.simulation import history, load_scenario
from tests.servers.influxdb import InfluxDB

START = 1_700_006_400
SCENARIOS = ("training", "training_few_cores", "finetuning", "chatbot")
HOST = b"THEHOST"
SETTLE_SECONDS = 20.0  # what was loaded at once is compacted for a while


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
    pool = urllib3.PoolManager()
    points = 0
    for number in range(first, first + servers):
        for piece in templates[number % len(templates)]:
            text = piece.replace(HOST, b"node-%04d" % number)
            answer = pool.request(
                "POST",
                f"{influxdb.url}/write?db={database}&precision=ns",
                body=gzip.compress(text, 1),
                headers={"Content-Encoding": "gzip"},
                timeout=120,
            )
            if answer.status != 204:
                raise RuntimeError(answer.data.decode())
            points += text.count(b"\n") + 1
    return points


def timed(url: str, database: str, folder: Path) -> tuple[float, int, int]:
    """Seconds, peak bytes of the largest process and findings of one command."""
    config = folder / "advisor.toml"
    config.write_text(f"[service]\nstate = '{folder}/advisor.db'\n[influx]\ntimeout_seconds = 60\n")
    began = time.monotonic()
    done = subprocess.run(
        [
            *(sys.executable, "-m", "advisor.cli", "findings", "--json"),
            *("--config", config, "--influx", f"{url}?db={database}"),
        ],
        capture_output=True,
        check=True,
    )
    seconds = time.monotonic() - began
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    return seconds, peak, len(json.loads(done.stdout))


def _own_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _cpu(influxdb: InfluxDB) -> float:
    """Seconds of processors that the server has used."""
    times = Path(f"/proc/{influxdb.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(times[11]) + int(times[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Prints what was measured."""
    servers, days = int(sys.argv[1]), float(sys.argv[2]) if len(sys.argv) > 2 else 7.0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "influxdb").mkdir()
        influxdb = InfluxDB.launch(folder / "influxdb")
        try:
            began = time.monotonic()
            points = load(influxdb, "fleet", 0, servers, days)
            print(f"{servers} servers, {points} points, loaded in {time.monotonic() - began:.0f} s")
            time.sleep(SETTLE_SECONDS)
            for how in ("first", "with digests"):
                before = _cpu(influxdb), _own_cpu()
                seconds, peak, findings = timed(influxdb.url, "fleet", folder)
                print(
                    f"{how}: {seconds:.1f} s ({_own_cpu() - before[1]:.1f} s of processors for us,"
                    f" {_cpu(influxdb) - before[0]:.1f} s for InfluxDB),"
                    f" {peak / 2**20:.0f} MiB for the largest process, {findings} findings;"
                    f" load of the machine {os.getloadavg()[0]:.1f}",
                    flush=True,
                )
        finally:
            influxdb.process.stop()


if __name__ == "__main__":
    main()
