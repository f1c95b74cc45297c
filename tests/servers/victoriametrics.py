"""VictoriaMetrics, as Debian packages it: a write target, and a Prometheus to read from."""

import json
import urllib.parse
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.require import need_program
from tests.servers.process import ServerProcess, answers, free_port, on_free_ports


@dataclass(frozen=True)
class ExportedSeries:
    """One series of ``/api/v1/export``: its labels, ``__name__`` among them, and its samples."""

    labels: Mapping[str, str]
    values: Sequence[float]
    times_ms: Sequence[int]


@dataclass(frozen=True)
class VictoriaMetrics:
    """A running VictoriaMetrics; a line-protocol field arrives as series MEASUREMENT_FIELD."""

    url: str
    process: ServerProcess = field(repr=False)

    @classmethod
    def launch(cls, folder: Path) -> "VictoriaMetrics":
        """A new server on a free port; skips or fails the test where it is absent."""
        program = need_program("victoria-metrics", "victoria-metrics")

        def start() -> VictoriaMetrics:
            port = free_port()
            url = f"http://127.0.0.1:{port}"
            process = ServerProcess(
                [
                    str(program),
                    f"-httpListenAddr=127.0.0.1:{port}",
                    f"-storageDataPath={folder}/data",
                    # Samples older than this are dropped without a word, and tests use fixed times.
                    "-retentionPeriod=100y",
                    # The same point again would else be kept twice.
                    "-dedup.minScrapeInterval=1ms",
                    "-search.latencyOffset=1ms",
                    "-search.disableCache",
                ],
                folder,
                lambda: answers(f"{url}/health"),
            )
            process.start()
            return cls(url, process)

        return on_free_ports(start)

    def flush(self) -> None:
        """Make what was written visible to readers, within about a second (else about ten)."""
        with urllib.request.urlopen(f"{self.url}/internal/force_flush", timeout=30):
            pass

    def export(self, selector: str) -> list[ExportedSeries]:
        """All samples of the series that ``selector`` names, in order of time."""
        query = urllib.parse.urlencode({"match[]": selector})
        with urllib.request.urlopen(f"{self.url}/api/v1/export?{query}", timeout=60) as answer:
            found = [json.loads(line) for line in answer]
        return [ExportedSeries(one["metric"], one["values"], one["timestamps"]) for one in found]
