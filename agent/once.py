"""This machine now: two readings a second apart, as the document of `talla-agent once --json`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent.collectors.gpu import gpu_key
from agent.machine import MachineSource
from agent.nvml.types import GpuReading
from telemetry.clock import Clock
from telemetry.metrics import GPU, family
from telemetry.window import Key, Sample

# Made of several readings or windows, not read.
_DERIVED = ("gap_", "signal_", "lost_ratio", "memory_full_seconds", "pcie_link_ratio")
_HOST_LIST = (("disk", "disks"), ("mount", "mounts"), ("nic", "nics"), ("engine", "engines"))

_NO_PROCESS = "no process of this GPU could be looked at"
_NO_WORKERS = "no process of this GPU has workers that could be looked at"
OF_NO_JOB = frozenset({_NO_PROCESS, _NO_WORKERS})
"""Reasons that only say that nobody works on the GPU now."""

Document = dict[str, Any]


def take(source: MachineSource, clock: Clock) -> Sample:
    """The second of two samples that are one second apart, so that it has rates."""
    first = source.sample(clock.monotonic(), int(clock.wall()))
    clock.sleep(1.0)
    second = source.sample(clock.monotonic(), int(clock.wall()))
    # What is read every few seconds is in the first alone.
    for key, texts in first.texts.items():
        if key in second.rows:
            second.texts[key] = {**texts, **second.texts.get(key, {})}
    for key, row in second.rows.items():
        if key[0] == "gpu_process":
            second.rows[key] = {**first.rows.get(key, {}), **row}
    return second


def document(source: MachineSource, sample: Sample, host: str) -> Document:
    """The sample in the shape of `once --json`. What is not known is not in it."""
    reasons = source.unavailable()
    found: Document = {
        "time": sample.time,
        "host": host,
        "gpus": [_gpu(reading, sample, reasons) for reading in source.gpu.readings],
        "host_metrics": _metrics(("host",), sample),
    }
    for measurement, name in _HOST_LIST:
        keys = _keys(sample, measurement)
        found[name] = [_subject(key, sample) for key in keys]
    unavailable = _host_unavailable(source, reasons)
    if unavailable:
        found["unavailable"] = unavailable
    return found


def _keys(sample: Sample, measurement: str, *below: str) -> list[Key]:
    start = (measurement, *below)
    keys = {k for rows in (sample.rows, sample.texts) for k in rows if k[: len(start)] == start}
    return sorted(keys, key=lambda k: (len(k[-1]), k))


def _reasons_of(key: Key, reasons: Mapping[str, str]) -> dict[str, str]:
    """What is absent of one subject, by metric, of the reasons of all."""
    start = " ".join(key) + " "
    return {n.removeprefix(start): why for n, why in reasons.items() if n.startswith(start)}


def _gpu(reading: GpuReading, sample: Sample, reasons: Mapping[str, str]) -> Document:
    found: Document = {"index": reading.index}
    if reading.uuid is not None:
        found["uuid"] = reading.uuid
    if reading.name is not None:
        found["name"] = reading.name
    if reading.error is not None:
        found["error"] = reading.error
    key = gpu_key(reading)
    metrics = {n: v for n, v in _metrics(key, sample).items() if not n.startswith(_DERIVED)}
    texts = {n: t for n, t in sample.texts.get(key, {}).items() if n not in ("gpu_model", "error")}
    found["metrics"] = metrics
    found.update(texts)
    found["unavailable"] = gpu_unavailable(reading, metrics, reasons)
    found["processes"] = [
        _process(key, sample) for key in _keys(sample, "gpu_process", reading.uuid or "")
    ]
    return found


def _metrics(key: Key, sample: Sample) -> dict[str, int | float]:
    """The readings of a row, counts as whole numbers."""
    declared = family(key[0])
    return {
        name: value if (metric := declared.metric(name)) is None else metric.reading(value)
        for name, value in sample.rows.get(key, {}).items()
    }


def gpu_unavailable(
    reading: GpuReading, metrics: Mapping[str, float], everything: Mapping[str, str]
) -> dict[str, str]:
    """Every declared metric that is absent of a GPU, with the reason: `everything` has those of
    all subjects, as `MachineSource.unavailable` gives them."""
    told = _reasons_of(gpu_key(reading), everything)
    instance = "/" in (reading.uuid or "")
    reasons: dict[str, str] = {}
    for metric in GPU.metrics:
        name = metric.name
        if name in metrics or name.startswith(_DERIVED):
            continue
        if reading.error is not None:
            reasons[name] = f"the GPU does not answer: {reading.error}"
        else:
            reasons[name] = told.get(name) or _unread(name, instance)
    return reasons


def _unread(name: str, instance: bool) -> str:
    if name == "job_computing_ratio":
        return _NO_WORKERS
    if name.startswith(("job_", "process_")):
        return _NO_PROCESS
    if instance:
        return "told of the whole card, not of a MIG instance"
    if name.startswith("xid_"):
        return "the driver does not let XIDs be waited for here (a vGPU, WSL)"
    return "this card or driver has no source of it"


def _process(key: Key, sample: Sample) -> Document:
    texts = dict(sample.texts.get(key, {}))
    found: Document = {}
    if "pid" in texts:
        found["pid"] = int(texts.pop("pid"))
    return {**found, **texts, **_metrics(key, sample)}


def _subject(key: Key, sample: Sample) -> Document:
    """A disk, mount, NIC or engine: what names it, its texts, its metrics."""
    names = dict(zip(family(key[0]).tags, key[1:], strict=True))
    texts = {n: t for n, t in sample.texts.get(key, {}).items() if n not in names}
    return {**names, **texts, "metrics": _metrics(key, sample)}


def _host_unavailable(source: MachineSource, reasons: Mapping[str, str]) -> dict[str, str]:
    """Reasons that belong to no GPU row."""
    rows = [" ".join(gpu_key(reading)) for reading in source.gpu.readings]
    return {
        name: reason
        for name, reason in reasons.items()
        if not any(name == row or name.startswith(row + " ") for row in rows)
    }
