"""`/metrics` for Prometheus: the newest readings, in its text format (version 0.0.4).

Off by default, on loopback. Names are `talla_`, the measurement, the metric; units are base units
and counters end in `_total` (https://prometheus.io/docs/practices/naming/). Labels are the tags of
InfluxDB, less the host, which is the scraper's `instance`; nothing unbounded is a label.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from agent.errors import UserError
from agent.source import Source
from telemetry.event import Event
from telemetry.inventory import Inventory
from telemetry.metrics import FAMILIES, Family
from telemetry.window import Key, Sample

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_FRESH_SECONDS = 12.0
"""What is read every 5 s is told until its next reading; what is older is absent."""
_TIMEOUT = 5.0
_NAMES = {"gpu_process": "process"}
"""`gpu_process` would give `gpu_process_memory_bytes`, which is a metric of the GPU."""
# Texts of few values: `talla_MEASUREMENT_info` bears them, so that no series changes its labels.
_INFO = {
    "gpu": ("gpu_model",),
    "gpu_process": ("owner", "owner_kind", "workload", "model"),
    "engine": ("engine", "engine_version", "model"),
    "mount": ("fstype",),
    "disk": ("kind",),
    "nic": ("kind",),
}


class Latest:
    """The newest value of each metric of each subject."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._values: dict[Key, dict[str, tuple[float, float]]] = {}
        self._texts: dict[Key, tuple[Mapping[str, str], float]] = {}

    def take(self, sample: Sample, now: float) -> None:
        """Keeps a sample; `now` is monotonic time in seconds."""
        with self._lock:
            for key, row in sample.rows.items():
                known = self._values.setdefault(key, {})
                known.update((name, (value, now)) for name, value in row.items())
            for key, texts in sample.texts.items():
                self._texts[key] = dict(texts), now
            oldest = now - _FRESH_SECONDS
            for key, known in list(self._values.items()):
                fresh = {n: pair for n, pair in known.items() if pair[1] >= oldest}
                if fresh:
                    self._values[key] = fresh
                else:
                    del self._values[key]
            self._texts = {k: t for k, t in self._texts.items() if t[1] >= oldest}

    def page(self) -> str:
        """The page in the text format."""
        with self._lock:
            values = {key: dict(row) for key, row in self._values.items()}
            texts = {key: told for key, (told, _) in self._texts.items()}
        lines: list[str] = []
        for family in FAMILIES:
            keys = sorted(key for key in values if key[0] == family.measurement)
            if keys:
                lines += _family(family, keys, values, texts)
        return "\n".join(lines) + "\n"


def prefix(family: Family) -> str:
    """What the names of a family's metrics begin with."""
    return f"talla_{_NAMES.get(family.measurement, family.measurement)}"


def _family(
    family: Family,
    keys: list[Key],
    values: Mapping[Key, Mapping[str, tuple[float, float]]],
    texts: Mapping[Key, Mapping[str, str]],
) -> Iterator[str]:
    labels = {key: _labels(dict(zip(family.tags, key[1:], strict=True))) for key in keys}
    for metric in family.metrics:
        told = [key for key in keys if metric.name in values[key]]
        if told:
            name = f"{prefix(family)}_{metric.name}"
            help_text = metric.help.replace("\\", "\\\\").replace("\n", " ")
            yield f"# HELP {name} {help_text}"
            yield f"# TYPE {name} {metric.kind.value}"
            for key in told:
                yield f"{name}{labels[key]} {values[key][metric.name][0]:.10g}"
    wanted = _INFO.get(family.measurement)
    if wanted is None:
        return
    name = f"{prefix(family)}_info"
    yield f"# HELP {name} what it is; always 1"
    yield f"# TYPE {name} gauge"
    for key in keys:
        said = {text: texts[key][text] for text in wanted if texts.get(key, {}).get(text)}
        yield f"{name}{_labels({**dict(zip(family.tags, key[1:], strict=True)), **said})} 1"


def _labels(pairs: Mapping[str, str]) -> str:
    if not pairs:
        return ""
    escaped = {
        name: value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        for name, value in pairs.items()
    }
    return "{" + ",".join(f'{name}="{value}"' for name, value in escaped.items()) + "}"


class ExportedSource:
    """A source whose samples are also on the page."""

    def __init__(self, source: Source, address: str, port: int) -> None:
        """Raises UserError where the address cannot be listened on."""
        self._source = source
        self.simulated: str | None = source.simulated
        self._latest = Latest()
        latest = self._latest

        class Handler(BaseHTTPRequestHandler):
            timeout = _TIMEOUT

            def do_GET(self) -> None:
                if self.path.partition("?")[0] != "/metrics":
                    self.send_error(404)
                    return
                body = latest.page().encode("utf-8", "backslashreplace")
                self.send_response(200)
                self.send_header("Content-Type", CONTENT_TYPE)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *arguments: object) -> None:
                """A scrape is no news."""

        try:
            self._server = ThreadingHTTPServer((address, port), Handler)
        except OSError as error:
            raise UserError(
                f"[prometheus] {address}:{port} cannot be listened on: {error.strerror}"
            ) from None
        self._server.daemon_threads = True
        threading.Thread(
            target=self._server.serve_forever, daemon=True, name="talla-metrics"
        ).start()

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return int(self._server.server_address[1])

    def sample(self, now: float, time: int) -> Sample:
        sample = self._source.sample(now, time)
        self._latest.take(sample, now)
        return sample

    def events(self) -> list[Event]:
        return self._source.events()

    def inventory(self) -> Inventory:
        return self._source.inventory()

    def gpu_library(self) -> str | None:
        return self._source.gpu_library()

    def read_at(self) -> Mapping[str, float]:
        return self._source.read_at()

    def cpu_seconds(self) -> float:
        return self._source.cpu_seconds()

    def errors_total(self) -> int:
        return self._source.errors_total()

    def unavailable(self) -> Mapping[str, str]:
        return self._source.unavailable()

    def release(self) -> None:
        self._source.release()

    def resume(self) -> None:
        self._source.resume()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._source.close()


__all__ = ["CONTENT_TYPE", "ExportedSource", "Latest"]
