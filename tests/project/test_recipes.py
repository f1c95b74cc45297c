"""The recipes of CONTRIBUTING.md, followed in a copy: that touches the files that they name."""

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

DECLARED = '        Metric("load_1m", "tasks", GAUGE, "load average of the last minute", MAX),\n'
SOURCE = 'Source(("load_1m",), "/proc/loadavg", "all"),\n'
PROBE = 'Probe(("load_1m",), self._read_load)'
READING = '        values["load_1m"] = float(self._load.record().split(None, 1)[0])\n'

EVERYWHERE = """
import sys
from agent.collectors.collector import Sources
from agent.collectors.cpu import CpuCollector
from agent.exporter import Latest
from agent.metrics_page import page
from agent.shipping.line_protocol import window_lines
from telemetry.aggregate import Aggregator
from telemetry.signals import Signals
from telemetry.store import Store, StoreReader
from telemetry.window import Sample

collector = CpuCollector(Sources())
sample = Sample(1_700_000_100.0, {})
collector.collect(1.0, sample)
five = sample.rows["host",]["load_5m"]
latest = Latest()
latest.take(sample, 1.0)
assert "talla_host_load_5m" in latest.page()
aggregator = Aggregator("node", Signals.load())
aggregator.add(sample)
windows = aggregator.flush()
assert any(b"load_5m=" in line for window in windows for line in window_lines(window))
with Store(sys.argv[1]) as store:
    store.append(windows)
with StoreReader(sys.argv[1]) as reader:
    (frame,) = reader.frames("node", "host", 300, since=0, until=2e9, fields=["load_5m"])
assert abs(frame.columns["load_5m"][0] - five) < 0.01
assert any(line.startswith("| `load_5m` | tasks | load average of five") for line in page())
"""


def replace(path: Path, old: str, new: str) -> None:
    text = path.read_text("utf-8")
    assert text.count(old) == 1, (path, old)
    path.write_text(text.replace(old, new), "utf-8")


def test_a_metric_touches_its_declaration_and_its_collector(tmp_path: Path) -> None:
    """Read, windows of both tiers, store, shipping, /metrics and docs/metrics.md follow."""
    for package in ("telemetry", "agent"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / package, tmp_path / package, ignore=ignored)

    declaration = tmp_path / "telemetry" / "metrics" / "host.py"
    added = DECLARED.replace("1m", "5m").replace("the last minute", "five minutes")
    replace(declaration, DECLARED, DECLARED + added)
    replace(declaration, SOURCE, SOURCE.replace('("load_1m",)', '("load_1m", "load_5m")'))
    collector = tmp_path / "agent" / "collectors" / "cpu.py"
    replace(collector, PROBE, 'Probe(("load_1m", "load_5m"), self._read_load)')
    second = READING.replace("1m", "5m").replace("(None, 1)[0]", "(None, 2)[1]")
    replace(collector, READING, READING + second)

    subprocess.run(
        [sys.executable, "-c", EVERYWHERE, str(tmp_path / "talla.db")], cwd=tmp_path, check=True
    )
