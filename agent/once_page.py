"""`talla-agent once` for people."""

from __future__ import annotations

import time
from typing import Any

from telemetry.plain import plain

_GIB = 1 << 30


def page(found: dict[str, Any]) -> str:
    """The document of `once --json` as a page of text."""
    when = time.strftime("%Y-%m-%d %H:%M:%S %z", time.localtime(found["time"]))
    lines = [f"{found['host']}, {when}", ""]
    gpus = found["gpus"]
    if gpus:
        for gpu in gpus:
            lines += _gpu(gpu)
    else:
        reason = found.get("unavailable", {}).get("gpu", "none was found")
        lines.append(f"GPUs: {reason}")
    lines += ["", *_host(found["host_metrics"])]
    for name, sentence in (("disks", _disk), ("mounts", _mount), ("nics", _nic)):
        lines += [sentence(subject) for subject in found[name]]
    lines += [_engine(engine) for engine in found["engines"]]
    return "\n".join(map(plain, lines))


def _gpu(gpu: dict[str, Any]) -> list[str]:
    head = f"GPU {gpu['index']}  {gpu.get('name', 'unknown model')}"
    if "error" in gpu:
        return [f"{head}: does not answer: {gpu['error']}"]
    metrics = gpu["metrics"]
    parts = [
        _said("busy", _ratio(metrics.get("utilization_ratio"))),
        _said("SM active", _ratio(metrics.get("sm_active_ratio"))),
        _said("memory", _of(metrics.get("memory_used_bytes"), metrics.get("memory_total_bytes"))),
        _said("power", _watts(metrics.get("power_watts"), metrics.get("power_limit_watts"))),
        _said("", _unit(metrics.get("temperature_celsius"), "°C")),
        _said("PCIe in", _rate(metrics.get("pcie_rx_bytes_per_second"))),
        _said("out", _rate(metrics.get("pcie_tx_bytes_per_second"))),
    ]
    lines = [f"{head}: " + ", ".join(part for part in parts if part)]
    if "utilization_ratio" not in metrics:
        lines.append(f"    busy is unknown: {gpu['unavailable'].get('utilization_ratio')}")
    for process in gpu["processes"]:
        who = process.get("user") or process.get("owner") or "unknown user"
        what = process.get("model") or process.get("workload") or process.get("name") or "?"
        memory = process.get("memory_bytes")
        held = "" if memory is None else f", {memory / _GIB:.1f} GiB"
        lines.append(f"    process {process.get('pid', '?')} of {who}: {what}{held}")
    return lines


def _host(metrics: dict[str, float]) -> list[str]:
    parts = [
        _said("CPU busy", _ratio(metrics.get("cpu_busy_ratio"))),
        _said("waiting for I/O", _ratio(metrics.get("cpu_iowait_ratio"))),
        _said("memory", _of(metrics.get("memory_used_bytes"), metrics.get("memory_total_bytes"))),
    ]
    lines = ["Host: " + ", ".join(part for part in parts if part)]
    pressure = [
        f"{resource} {metrics[f'pressure_{resource}_some_ratio']:.0%}"
        for resource in ("cpu", "io", "memory")
        if f"pressure_{resource}_some_ratio" in metrics
    ]
    if pressure:
        lines.append("Pressure: " + ", ".join(pressure))
    return lines


def _disk(disk: dict[str, Any]) -> str:
    metrics = disk["metrics"]
    return f"Disk {disk['device']}: " + _flow(metrics, "read", "write") + _busy(metrics)


def _mount(mount: dict[str, Any]) -> str:
    metrics = mount["metrics"]
    used = _of(metrics.get("used_bytes"), metrics.get("size_bytes"))
    flow = _flow(metrics, "read", "write")
    return f"Mount {mount['mount']} ({mount.get('fstype', '?')}): " + ", ".join(
        part for part in (_said("used", used), flow) if part
    )


def _nic(nic: dict[str, Any]) -> str:
    state = f" ({nic['state']})" if "state" in nic else ""
    return f"NIC {nic['device']}{state}: " + _flow(nic["metrics"], "rx", "tx")


def _engine(engine: dict[str, Any]) -> str:
    metrics = engine["metrics"]
    head = f"Engine {engine.get('engine', '?')} {engine.get('engine_version', '')}".rstrip()
    parts = [
        _said("serves", engine.get("model", "")),
        _said("KV cache", _ratio(metrics.get("kv_cache_usage_ratio"))),
        _said("running", _count(metrics.get("requests_running"))),
        _said("waiting", _count(metrics.get("requests_waiting"))),
        _said("makes", _unit(metrics.get("generation_tokens_per_second"), "tokens/s")),
    ]
    told = ", ".join(part for part in parts if part) or "answers"
    return f"{head} on port {engine['port']}: {told}"


def _count(value: float | None) -> str:
    return "" if value is None else f"{value:.0f}"


def _flow(metrics: dict[str, float], inward: str, outward: str) -> str:
    pairs = ((name, _rate(metrics.get(f"{name}_bytes_per_second"))) for name in (inward, outward))
    return ", ".join(f"{name} {rate}" for name, rate in pairs if rate)


def _busy(metrics: dict[str, float]) -> str:
    busy = _ratio(metrics.get("busy_ratio"))
    return f", busy {busy}" if busy else ""


def _said(what: str, value: str) -> str:
    return f"{what} {value}".strip() if value else ""


def _ratio(value: float | None) -> str:
    return "" if value is None else f"{value:.0%}"


def _unit(value: float | None, unit: str) -> str:
    return "" if value is None else f"{value:.0f} {unit}"


def _of(used: float | None, total: float | None) -> str:
    if used is None or not total:
        return ""
    return f"{used / _GIB:.1f} of {total / _GIB:.1f} GiB"


def _watts(power: float | None, limit: float | None) -> str:
    if power is None:
        return ""
    return f"{power:.0f} W" if limit is None else f"{power:.0f} of {limit:.0f} W"


def _rate(value: float | None) -> str:
    if value is None:
        return ""
    for unit, size in (("GB/s", 1e9), ("MB/s", 1e6), ("kB/s", 1e3)):
        if value >= size:
            return f"{value / size:.1f} {unit}"
    return f"{value:.0f} B/s"


__all__ = ["page"]
