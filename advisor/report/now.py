"""How it stands now, for a terminal: hosts, their GPUs, whose work is on them, and alerts."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from advisor.message import Amount
from advisor.report import words
from advisor.report.language import Language
from advisor.report.terminal import plain
from advisor.web.picture import AlertNow, GpuNow, HostNow, Picture
from telemetry.states import Cause, State

_OLD_SECONDS = 60.0
"""Windows older than this are told as old: the agent writes one every ten seconds."""
_STATES = {
    State.BUSY: ("█", "blue"),
    State.STARVED: ("▓", "red"),
    State.STUCK: ("!", "bold magenta"),
    State.ORPHAN_HELD: ("!", "magenta"),
    State.IDLE_HELD: ("▒", "yellow"),
    State.IDLE_FREE: ("░", "dim"),
    State.UNKNOWN: ("?", "dim"),
}
_SEVERITIES = {"critical": "bold red", "warning": "bold yellow", "info": "bold"}
_BAR = 6


def screen(
    picture: Picture, language: Language, now: float, *, narrow: bool, trouble: str | None = None
) -> RenderableType:
    """All hosts; `now` is Unix time, by which old data are told. `narrow` fits 80 columns."""
    parts: list[RenderableType] = []
    if trouble is not None:
        parts.append(Text(plain(trouble), style="bold red"))
    if not picture.hosts:
        parts.append(Text(language.text("Nothing was recorded here yet.")))
    for host in picture.hosts:
        parts.append(_head(host, language, now))
        parts.append(_gpus(host, language, narrow))
    raised = [alert for alert in picture.alerts if alert.raised]
    if raised:
        parts.append(Text("\n" + language.text("Alerts"), style="bold underline"))
        parts += [_alert(alert, language, now) for alert in raised]
    return Group(*parts)


def _head(host: HostNow, language: Language, now: float) -> Text:
    text = Text("\n" + plain(host.host), style="bold")
    readings = host.readings or {}
    told = []
    if "cpu_busy_ratio" in readings:
        told.append(f"CPU {language.share(readings['cpu_busy_ratio'])}")
    used, total = readings.get("memory_used_bytes"), readings.get("memory_total_bytes")
    if used is not None and total:
        told.append(f"RAM {_of(used, total, language)}")
    if "pressure_io_some_ratio" in readings:
        told.append(
            language.text("I/O pressure") + " " + language.share(readings["pressure_io_some_ratio"])
        )
    if told:
        text.append("  " + " · ".join(told), style="not bold")
    if host.time is None:
        text.append("  " + language.text("no data"), style="bold red")
    elif now - host.time > _OLD_SECONDS:
        age = language.duration(now - host.time)
        text.append(
            "  " + language.text("No new data for {age}. Is the agent running?", age=age),
            style="bold red",
        )
    return text


def _gpus(host: HostNow, language: Language, narrow: bool) -> RenderableType:
    if not host.gpus:
        return Text("  " + language.text("This server has no GPU that was seen."), style="dim")
    table = Table(box=None, padding=(0, 1 if narrow else 2, 0, 0), pad_edge=False)
    table.add_column("", justify="right", no_wrap=True)
    table.add_column(language.text("State"), overflow="fold", min_width=14)
    table.add_column(language.text("Activity"), no_wrap=True)
    table.add_column(language.text("Memory"), justify="right", no_wrap=True)
    table.add_column(language.text("Power"), justify="right", no_wrap=True)
    if not narrow:
        table.add_column("PCIe", justify="right", no_wrap=True)
        table.add_column("°C", justify="right", no_wrap=True)
    table.add_column(language.text("Whose work"), overflow="fold")
    for place, gpu in enumerate(host.gpus):
        table.add_row(*_cells(gpu, place, language, narrow))
    return Padding(table, (0, 0, 0, 1))


def _cells(gpu: GpuNow, place: int, language: Language, narrow: bool) -> Iterator[RenderableType]:
    readings = gpu.readings or {}
    yield str(place if gpu.index is None else gpu.index)
    if gpu.error:
        yield Text(plain(language.text("gives no reading") + f": {gpu.error}"), style="bold red")
    else:
        state = State(gpu.state)
        sign, style = _STATES[state]
        text = Text(f"{sign} {language.text(words.STATES[state])}", style=style)
        if gpu.cause in list(Cause) and state is State.STARVED:
            text.append(f": {language.text(words.CAUSES[Cause(gpu.cause)])}")
        if gpu.state_since is not None and gpu.time is not None and gpu.time > gpu.state_since:
            text.append(f" {language.duration(gpu.time - gpu.state_since)}", style="dim")
        yield text
    ratio = readings.get("utilization_ratio")
    yield (
        Text()
        if ratio is None
        else Text.assemble(
            ("━" * round(ratio * _BAR), "blue"),
            ("─" * (_BAR - round(ratio * _BAR)), "dim"),
            f"{language.share(ratio):>6}",
        )
    )
    used, total = readings.get("memory_used_bytes"), readings.get("memory_total_bytes")
    memory = "" if used is None else _of(used, total, language)
    if gpu.memory_needed_bytes is not None and not narrow:
        needed = language.amount(Amount(gpu.memory_needed_bytes, "bytes"))
        memory += f" ({language.text('needs {needed}', needed=needed)})"
    yield memory
    watts = readings.get("power_watts")
    yield "" if watts is None else language.amount(Amount(round(watts), "watts"))
    if not narrow:
        rates = [readings.get(f"pcie_{way}_bytes_per_second") for way in ("rx", "tx")]
        known = [r for r in rates if r is not None]
        yield language.amount(Amount(sum(known), "bytes/second")) if known else ""
        degrees = readings.get("temperature_celsius")
        yield "" if degrees is None else language.number(round(degrees))
    yield Text(_whose(gpu))


def _whose(gpu: GpuNow) -> str:
    owners = dict.fromkeys(
        " ".join(part for part in (p.owner or "", _short(p.model or p.name or "")) if part)
        for p in gpu.processes
    )
    return plain(", ".join(owner[:60] for owner in owners if owner))


def _short(name: str) -> str:
    """A model without its publisher, a program without its folder."""
    return name.split(" ")[0].rstrip("/").rpartition("/")[2] or name


def _alert(alert: AlertNow, language: Language, now: float) -> Text:
    text = Text(f"  {plain(alert.host)} ", style="bold")
    text.append(plain(alert.title or alert.rule), style=_SEVERITIES.get(alert.severity, "bold"))
    text.append(f" {language.duration(max(0.0, now - alert.time))}", style="not bold dim")
    if alert.owner:
        text.append(f" · {plain(alert.owner)}", style="not bold")
    return text


def _of(used: float, total: float | None, language: Language) -> str:
    if not total:
        return language.amount(Amount(used, "bytes"))
    whole = Amount(total, "bytes")
    unit = str(whole).split(" ")[1]
    scale = {"TB": 1e12, "GB": 1e9, "MB": 1e6}.get(unit, 1.0)
    return f"{language.number(used / scale)}/{language.amount(whole)}"
