"""The programs that are measured, and how each is started."""

from __future__ import annotations

import importlib.metadata
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bench.staging import free_port

_BIN = Path(sys.executable).parent


@dataclass(frozen=True, slots=True)
class Start:
    """A command, and the address that a scraper reads once a second, if that is how it works."""

    command: tuple[str, ...]
    scrape: str | None = None


@dataclass(frozen=True, slots=True)
class Program:
    """One row of the table. `start` gets the run's folder; `what` says what it reads."""

    name: str
    version: str
    what: str
    start: Callable[[Path], Start]
    ours: bool = False
    shipping: bool = False


def programs(sink: str) -> tuple[list[Program], list[str]]:
    """What can be measured here, and what is left out with the reason. `sink` takes writes."""
    ours = _distribution("talla") or "from the source tree"
    found = [
        Program("talla-agent", ours, "GPUs, processes, host; local store", _agent, ours=True),
        Program(
            "talla-agent, shipping",
            ours,
            "the same, and to InfluxDB",
            lambda folder: _agent(folder, sink),
            ours=True,
            shipping=True,
        ),
    ]
    left_out = []
    for name, package, what, start in (
        ("nvitop-exporter", "nvitop-exporter", "GPUs, processes, some of the host", _nvitop),
        ("gpustat", "gpustat", "GPUs, processes", _gpustat),
        ("glances", "glances", "GPUs, processes of the host, host", _glances),
    ):
        version = _distribution(package)
        if version is None:
            left_out.append(f"{name}: not installed (pip install 'talla[bench]')")
        else:
            found.append(Program(name, version, what, start))
    exporter = shutil.which("prometheus-node-exporter") or shutil.which("node_exporter")
    if exporter is None:
        left_out.append("node_exporter: not installed (Debian: prometheus-node-exporter)")
    else:
        told = subprocess.run([exporter, "--version"], capture_output=True, text=True, check=False)
        version = (told.stdout + told.stderr).partition("version ")[2].split(" ")[0]
        found.append(
            Program("node_exporter", version, "host only", lambda _: _node_exporter(exporter))
        )
    audit = _BIN / "gpu-usage-audit"
    if audit.exists():
        version = _distribution("gpu-usage-audit") or ""
        found.append(
            Program("gpu-usage-audit", version, "GPUs, processes", lambda _: _audit(audit))
        )
    else:
        left_out.append("gpu-usage-audit: needs Python 3.12 and `pip install gpu-usage-audit`")
    return found, left_out


def _distribution(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _agent(folder: Path, sink: str | None = None) -> Start:
    config = folder / "agent.toml"
    text = f"[agent]\nhost = 'bench'\n[store]\npath = '{folder / 'agent.db'}'\n"
    if sink is not None:
        token = folder / "token"
        token.write_text("secret")
        text += f"[influx]\nurl = '{sink}'\ntoken_file = '{token}'\n"
    config.write_text(text)
    return Start((sys.executable, "-m", "agent.cli", "run", "--config", str(config)))


def _nvitop(_: Path) -> Start:
    command = (str(_BIN / "nvitop-exporter"), "--port", str(free_port()), "--interval", "1")
    return Start(command)


def _gpustat(_: Path) -> Start:
    return Start((sys.executable, "-m", "bench.gpustat_loop"))


def _glances(_: Path) -> Start:
    return Start((str(_BIN / "glances"), "--time", "1", "--stdout", "gpu,cpu,mem,diskio,network"))


def _node_exporter(program: str) -> Start:
    address = f"127.0.0.1:{free_port()}"
    return Start((program, f"--web.listen-address={address}"), f"http://{address}/metrics")


def _audit(program: Path) -> Start:
    return Start((str(program), "daemon", "--interval", "1"))
