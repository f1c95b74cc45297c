"""Inference engines on this machine, by their own metrics pages."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from agent.background import Background
from agent.collectors.collector import Sources
from agent.engines.engines import COUNTERS, Engines
from agent.engines.listeners import Foreign, listening
from agent.engines.names import MOST, Names
from agent.engines.scrape import Scrape, Scraper, Target
from agent.host.hostfs import decode
from agent.host.processes import parse_stat
from telemetry.window import Key, Sample
from telemetry.workload import Kind, Signatures

_EARLY = 0.25
_STALE = 2.5
"""Intervals after which an engine that no longer answers has no row."""
_SERVES = frozenset({Kind.LLM_INFERENCE, Kind.LIGHT_INFERENCE, Kind.INFERENCE, Kind.MIXED})
_PORT_OPTION = re.compile(r"--(?:http[-_]|metrics[-_]|server[-_])?port[= ](\d{1,5})(?!\d)")
# Where engines listen unless told otherwise: vLLM, TensorRT-LLM 8000; SGLang 30000; TGI 3000 and
# 80; Triton's metrics 8002; llama.cpp 8080; Ollama 11434 (each one's documentation). Other ports
# of such a process may be a rendezvous of its ranks, which a stray request could disturb.
_USUAL_PORTS = frozenset({8000, 30000, 3000, 80, 8002, 8080, 11434})
_ANCESTORS = 4
_MOST_CHILDREN = 16


@dataclass(slots=True)
class _Found:
    """One engine."""

    uuids: set[str] = field(default_factory=set)
    seen: Scrape | None = None
    before: Scrape | None = None


class EngineCollector:
    """Every 15 s, in a thread of its own, the engines that GPU processes and their parents are.

    Only ports are asked that the command line names, that the engine has by default, or that the
    configuration gives; only on loopback. Between two looks the last one stands.
    """

    name = "engine"
    every = 15.0
    read_at: float | None = None

    def __init__(self, sources: Sources, scraper: Scraper | None = None) -> None:
        self._hostfs = sources.hostfs
        self._on = sources.engines
        self._urls = sources.engine_urls
        self._scraper = scraper
        self._signatures: Signatures | None = None
        self._pages: Background[Target, Scrape] | None = None
        self._serving: dict[Key, int] = {}
        self._found: dict[Target, _Found] = {}
        self._names = Names()
        self._due = -math.inf
        self._reasons: dict[str, str] = {}
        self.errors_total = 0

    def collect(self, now: float, sample: Sample) -> None:
        if not self._on:
            return
        self._listen_to(sample)
        if (self._serving or self._urls) and now >= self._due - _EARLY:
            self._due = now + self.every
            self._discover()
            if self._found:
                self._background().ask(self._found, now)
        elif self._pages is not None:
            self._pages.tend(now)
        for target, engine in self._found.items():
            self._add(target, engine, now, sample)

    def wait(self, seconds: float) -> None:
        """Waits until all engines are asked, at most so long: for `once`, never for the daemon."""
        if self._pages is not None:
            self._pages.wait(seconds)

    def unavailable(self) -> dict[str, str]:
        if not self._on:
            return {"engine": "engines are switched off by [engine] enabled = false"}
        reasons = dict(self._reasons)
        for target in self._found:
            reason = self._pages.reasons.get(target) if self._pages is not None else None
            if reason is not None:
                reasons[f"engine {target.port}"] = reason
        return reasons

    def _background(self) -> Background[Target, Scrape]:
        if self._pages is None:
            scraper = self._scraper or Scraper(Engines.load())
            # Two or three requests of a second each belong to one look.
            self._pages = Background(scraper.look, deadline=10.0)
        return self._pages

    def _listen_to(self, sample: Sample) -> None:
        """Which processes of GPUs serve; their texts come every few seconds."""
        for key, texts in sample.texts.items():
            if key[0] == "gpu_process" and texts.get("state") == "running" and "pid" in texts:
                if texts.get("workload") in _SERVES:
                    self._serving[key] = int(texts["pid"])
                else:
                    self._serving.pop(key, None)
        self._serving = {k: pid for k, pid in self._serving.items() if k in sample.rows}

    def _discover(self) -> None:
        self._reasons = {}
        found: dict[Target, set[str]] = {}
        claimed: set[str] = set()
        for key, pid in self._serving.items():
            for target in self._targets(pid):
                found.setdefault(target, set()).add(key[1])
                claimed.add(key[1])
        rest = {key[1] for key in self._serving} - claimed
        for url in self._urls:
            parts = urlsplit(url)
            target = Target(parts.hostname or "127.0.0.1", parts.port or 80)
            found.setdefault(target, set()).update(rest if len(self._urls) == 1 else ())
            if rest and len(self._urls) == 1:
                self._reasons = {
                    n: r for n, r in self._reasons.items() if not n.startswith("engine of")
                }
        kept = list(found.items())[:MOST]
        self._found = {target: self._found.get(target) or _Found() for target, _ in kept}
        self._names.keep(self._found)
        for target, uuids in kept:
            self._found[target].uuids = uuids
        if self._pages is not None:
            self._pages.forget(self._found)

    def _targets(self, pid: int) -> Iterable[Target]:
        """Where the engine of a process listens: itself, its parents, or a child of those."""
        targets: dict[int, Target] = {}
        why = "it listens on no port that is known to be an engine's"
        ports: dict[int, str] = {}
        for member in self._family(pid):
            command = self._command(member)
            named = {int(port) for port in _PORT_OPTION.findall(command)}
            try:
                ports = listening(self._hostfs, member)
            except Foreign:
                why = "it runs in a network namespace of its own (a container)"
                continue
            except OSError as error:
                why = f"/proc/{member}/fd: {error.strerror}"
                continue
            for port in ports.keys() & (named | _USUAL_PORTS):
                targets[port] = Target(ports[port], port)
        if not targets:
            self._reasons[f"engine of process {pid}"] = f"{why}: give its address as [engine] urls"
        return targets.values()

    def _family(self, pid: int) -> list[int]:
        """The process, its ancestors that serve too, and the children of those."""
        if self._signatures is None:
            self._signatures = Signatures.load()
        family = [pid]
        current = pid
        for _ in range(_ANCESTORS):
            try:
                parent = parse_stat(self._hostfs.bytes(f"/proc/{current}/stat", 4096)).parent
            except (OSError, ValueError, IndexError):
                break
            match = self._signatures.match(self._command(parent)) if parent > 1 else None
            if match is None or match.kind not in _SERVES:
                break
            family.append(parent)
            current = parent
        for ancestor in family[1:]:
            children = self._hostfs.maybe(f"/proc/{ancestor}/task/{ancestor}/children") or ""
            family += [int(c) for c in children.split()[:_MOST_CHILDREN] if int(c) not in family]
        return family

    def _command(self, pid: int) -> str:
        try:
            raw = self._hostfs.bytes(f"/proc/{pid}/cmdline", 8192)
        except OSError:
            return ""
        return decode(raw.rstrip(b"\0").replace(b"\0", b" ")).strip()

    def _add(self, target: Target, engine: _Found, now: float, sample: Sample) -> None:
        assert self._pages is not None
        answer = self._pages.answers.get(target)
        if answer is not None and answer is not engine.seen:
            engine.before, engine.seen = engine.seen, answer
            self.read_at = now
        scrape = engine.seen
        if scrape is None or now - scrape.time > _STALE * self.every:
            return
        row = dict(scrape.reading.levels)
        before = engine.before
        if before is not None and before.reading.engine == scrape.reading.engine:
            elapsed = scrape.time - before.time
            for counter, metric in COUNTERS.items():
                new = scrape.reading.counters.get(counter)
                old = before.reading.counters.get(counter)
                if new is not None and old is not None and new >= old and elapsed > 0:
                    row[metric] = (new - old) / elapsed
        texts = {"engine": scrape.reading.engine}
        if scrape.version is not None:
            texts["engine_version"] = scrape.version
        if engine.uuids:
            texts["gpu_uuids"] = " ".join(sorted(engine.uuids))
        if scrape.model is not None:
            texts["model"] = scrape.model
            self._name_models(engine.uuids, scrape.model, sample)
        key = ("engine", self._names[target])
        sample.rows[key], sample.texts[key] = row, texts
        for metric, reason in scrape.reading.unavailable.items():
            self._reasons[f"engine {target.port} {metric}"] = reason

    def _name_models(self, uuids: set[str], model: str, sample: Sample) -> None:
        """Processes whose command names no model serve the engine's."""
        for key, texts in sample.texts.items():
            if key in self._serving and key[1] in uuids and "model" not in texts:
                texts["model"], texts["model_source"] = model, "engine"


__all__ = ["EngineCollector"]
