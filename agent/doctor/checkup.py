"""The check-up behind `talla-agent doctor`: what is here, what is missing, what to do."""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

from agent.collectors.gpu import gpu_key
from agent.config.settings import DEFAULT_PATH, Settings
from agent.doctor.check import Check, Mark
from agent.doctor.influx import check_influx
from agent.host.cgroups import NO_PSI
from agent.host.wsl import CURE, TOLD, is_wsl
from agent.machine import MachineSource
from agent.nvml.sleep import ALL_ASLEEP
from agent.once import OF_NO_JOB, gpu_unavailable, take
from agent.running import is_running
from agent.sample_ages import told_ages
from telemetry.clock import Clock, SystemClock
from telemetry.metrics.agent import AGENT
from telemetry.store import StoreError, StoreReader
from telemetry.store_recovery import damaged_files
from telemetry.window import Sample

_LATE_SECONDS = 60.0
_AGE = "_sample_age_seconds"
_NONE = {"engines": "none was found among the processes of GPUs"}
_SUBJECTS = (("disk", "disks"), ("mount", "mounts"), ("nic", "network"), ("engine", "engines"))


def checkup(
    settings: Settings, source: MachineSource, config: str | None, clock: Clock | None = None
) -> list[Check]:
    """Looks at everything once; takes some seconds."""
    sample = take(source, clock or SystemClock())
    return [
        _configuration(config),
        *_gpus(source, sample),
        *_host(source, sample),
        *_store(Path(settings.store.path)),
        *check_influx(settings.influx),
    ]


def _configuration(config: str | None) -> Check:
    if config is not None or os.path.exists(DEFAULT_PATH):
        return Check("configuration", Mark.OK, f"{config or DEFAULT_PATH} is right")
    return Check(
        "configuration",
        Mark.ABSENT,
        f"{DEFAULT_PATH} is not there, the defaults hold",
        f"talla-agent config > {DEFAULT_PATH}, and edit it, if you want other settings",
    )


def _gpus(source: MachineSource, sample: Sample) -> Iterator[Check]:
    wsl = is_wsl(source.hostfs)
    if wsl:
        yield Check("platform", Mark.OK, TOLD)
    if source.nvml is None:
        yield Check("gpu driver", Mark.ABSENT, "GPUs are switched off by [gpu] enabled = false")
        return
    missing = source.gpu.unavailable().get("gpu")
    if missing == ALL_ASLEEP:
        yield Check("gpu driver", Mark.OK, missing)
        return
    if missing is not None:
        cure = CURE if wsl else _cure(missing)
        yield Check("gpu driver", Mark.PROBLEM, f"no GPU can be read: {missing}", cure)
        return
    system = source.nvml.system
    versions = [f"{n.replace('_version', '')} {v}" for n, v in system.items()]
    found = sum("/" not in (r.uuid or "") for r in source.gpu.readings)  # less MIG instances
    yield Check("gpu driver", Mark.OK, f"{found} GPUs, {', '.join(versions)}")
    reasons = source.unavailable()
    for reading in source.gpu.readings:
        instance = (reading.uuid or "").partition("/")[2]
        name = f"gpu {reading.index}" + (f" MIG {instance}" if instance else "")
        model = reading.name or reading.uuid or "unknown model"
        if reading.asleep:
            yield Check(name, Mark.OK, f"{model}: {reading.error}")
            continue
        if reading.error is not None:
            yield Check(
                name,
                Mark.PROBLEM,
                f"{model}: does not answer: {reading.error}",
                "look for Xid messages in the kernel's log (dmesg); reset the GPU or the machine",
            )
            continue
        yield Check(name, Mark.OK, f"{model}: {len(reading.values)} metrics")
        absent = gpu_unavailable(reading, sample.rows.get(gpu_key(reading), {}), reasons)
        for reason, metrics in _by_reason(absent):
            if reason in OF_NO_JOB:
                continue
            yield Check(name, Mark.ABSENT, f"not told ({reason}): {', '.join(metrics)}")


def _cure(reason: str) -> str:
    if "mismatch" in reason.lower():
        return "the driver was upgraded while loaded: reload its kernel modules, or restart"
    return (
        "install NVIDIA's driver (nvidia-smi must work); the host is sampled all the same, and the"
        " daemon finds the driver when it comes"
    )


def _host(source: MachineSource, sample: Sample) -> Iterator[Check]:
    row = sample.rows.get(("host",), {})
    if not row:
        why = "; ".join(f"{n}: {r}" for n, r in source.unavailable().items()) or "no reason known"
        mark = Mark.PROBLEM if any(key[0] == "gpu" for key in sample.rows) else Mark.FATAL
        yield Check("host", mark, f"nothing of /proc can be read: {why}", "is /proc mounted?")
        return
    yield Check("host", Mark.OK, f"{len(row)} metrics of processors, memory and pressure")
    for measurement, name in _SUBJECTS:
        found = sorted({k[1] for k in (*sample.rows, *sample.texts) if k[0] == measurement})
        if found:
            yield Check(name, Mark.OK, ", ".join(found))
        else:
            yield Check(name, Mark.ABSENT, _NONE.get(name, "none that matters to a job was found"))
    told = [" ".join(gpu_key(reading)) for reading in source.gpu.readings]
    others = {
        name: reason
        for name, reason in source.unavailable().items()
        if name != "gpu" and not any(name.startswith(known) for known in told)
    }
    for reason, metrics in _by_reason(others):
        remedy = None
        if reason == NO_PSI:
            remedy = "boot with psi=1 (kernels since 4.20), so that waiting for I/O can be told"
        yield Check("readings", Mark.ABSENT, f"{', '.join(metrics)}: {reason}", remedy)


def _by_reason(reasons: dict[str, str]) -> list[tuple[str, list[str]]]:
    grouped: dict[str, list[str]] = defaultdict(list)
    for metric, reason in reasons.items():
        grouped[reason].append(metric)
    return list(grouped.items())


def _store(path: Path) -> Iterator[Check]:
    folder = path.parent
    if not folder.is_dir():
        yield Check(
            "store",
            Mark.PROBLEM,
            f"{folder}: there is no such folder",
            f"make it, or set [store] path; or give --store FILE to talla-agent run ({path.name})",
        )
        return
    if not os.access(folder, os.X_OK):
        yield Check(
            "store",
            Mark.PROBLEM,
            f"{folder}: may not be looked into by this user",
            "look as the user who owns it: sudo -u talla talla-agent doctor",
        )
        return
    running = is_running(path)
    for aside in damaged_files(path):
        yield Check(
            "store",
            Mark.PROBLEM,
            f"{aside}: a damaged store that was set aside, {aside.stat().st_size / 1e6:.1f} MB",
            "look at the disk (dmesg, smartctl); then delete the file, or keep it for a rescue",
        )
    if path.exists():
        try:
            with StoreReader(path) as store:
                spans = {h: s for h in store.hosts() if (s := store.span(h, 10)) is not None}
                ages = _sample_ages(store, spans)
        except StoreError as error:
            yield Check("store", Mark.PROBLEM, str(error))
            return
        newest = max((end for _, end in spans.values()), default=None)
        age = None if newest is None else time.time() - newest
        size = sum(
            file.stat().st_size
            for file in (path, path.with_name(path.name + "-wal"))
            if file.exists()
        )
        text = f"{path}, {size / 1e6:.1f} MB"
        yield Check("store", Mark.OK, text)
        if running:
            yield _daemon(age, ages)
            return
    if running:
        yield _daemon(None)
    elif not os.access(path if path.exists() else folder, os.W_OK):
        yield Check(
            "store",
            Mark.PROBLEM,
            f"{path}: may not be written by this user",
            "run the daemon as the user who owns it",
        )
    else:
        yield Check("daemon", Mark.ABSENT, "no daemon writes this store", "talla-agent run")


def _sample_ages(store: StoreReader, spans: Mapping[str, tuple[int, int]]) -> dict[str, float]:
    """Seconds since each collector's newest reading, by the newest window of the agent's own row.

    The daemon's watchdog is fed by any reading; here one that stopped alone is seen.
    """
    if not spans:
        return {}
    host, (_, end) = max(spans.items(), key=lambda item: item[1][1])
    fields = [f for f in AGENT.fields() if f.endswith(_AGE)]
    frames = store.frames(host, "agent", 10, since=end - 10, until=end, fields=fields)
    newest = {f: c[-1] for frame in frames for f, c in frame.columns.items() if c}
    waited = max(0.0, time.time() - end)
    return {f.removesuffix(_AGE): age + waited for f, age in newest.items() if age is not None}


def _daemon(age: float | None, ages: Mapping[str, float] | None = None) -> Check:
    if age is None:
        return Check("daemon", Mark.OK, "runs, its first window is not complete yet")
    text = f"runs, its newest window ended {age:.0f} s ago"
    if ages:
        text += f"; newest samples: {told_ages(ages)}"
    late = [name for name, seconds in sorted((ages or {}).items()) if seconds > _LATE_SECONDS]
    if age > _LATE_SECONDS or late:
        remedy = "look at its log: journalctl -u talla-agent"
        if late and age <= _LATE_SECONDS:
            remedy = f"nothing new of {', '.join(late)}: {remedy}"
        return Check("daemon", Mark.PROBLEM, text, remedy)
    return Check("daemon", Mark.OK, text)


__all__ = ["Check", "Mark", "checkup"]
