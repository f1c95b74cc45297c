"""The first screen of the report in a terminal."""

from __future__ import annotations

from rich import box
from rich.columns import Columns
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from advisor.finding import Verdict
from advisor.report.language import Language
from advisor.report.report import Report
from advisor.report.sections import actions as actions_section
from advisor.report.sections import answer as answer_section
from advisor.report.sections import followed as followed_section
from advisor.report.sections import hours as hours_section
from advisor.report.sections import owners as owners_section
from advisor.report.sections import servers as servers_section
from telemetry.states import State

_STYLES = {
    Verdict.OVER: "bold blue",
    Verdict.UNDER: "bold red",
    Verdict.RIGHT: "bold green",
    Verdict.IDLE: "bold yellow",
    Verdict.ABSTAIN: "bold",
    Verdict.ADVICE: "bold magenta",
}
# Sign and colour of each state in a bar: the sign tells it where colours are off.
_BARS = {
    State.BUSY: ("█", "blue"),
    State.STARVED: ("▓", "red"),
    State.STUCK: ("▒", "magenta"),
    State.ORPHAN_HELD: ("▒", "magenta"),
    State.IDLE_HELD: ("▒", "yellow"),
    State.IDLE_FREE: ("░", "dim"),
    State.UNKNOWN: ("·", "dim"),
}
_BAR = 30
_LINES = 12


def first_screen(report: Report, language: Language, console: Console) -> None:
    """Prints the answer: counts, hours, and what to do first. Fits 80 columns."""
    parts: list[RenderableType] = []
    title = Text(language.text("GPU right-sizing report"), style="bold")
    if report.told is not None:
        title.append(
            "\n"
            + language.text(
                "{since} to {until}",
                since=language.moment(report.told.since),
                until=language.moment(report.told.until),
            ),
            style="not bold dim",
        )
    parts.append(title)
    if report.servers:
        parts.append(_counts(report, language))
    else:
        parts.append(Text("\n" + language.text(answer_section.NOTHING)))
    told = (part(report, language) for part in (_servers, _hours, _owners, _followed, _actions))
    parts += [part for part in told if part is not None]
    console.print(Group(*parts), highlight=False)


def _counts(report: Report, language: Language) -> RenderableType:
    answer = answer_section.build(report)
    told = []
    for count in answer.counts:
        style = _STYLES[count.verdict] if count.servers else "dim"
        label = f"{len(count.servers)} {count.mark} {language.text(count.label)}"
        told.append(Text(label, style=style))
    return Padding(Columns(told, padding=(0, 3)), (1, 0, 0, 2))


def _heading(text: str) -> Text:
    return Text("\n" + text, style="bold underline")


def _servers(report: Report, language: Language) -> RenderableType:
    listed = servers_section.lines(report)
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column(max_width=22, overflow="fold")
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for line in listed[:_LINES]:
        reason = "" if line.reason is None else language.text(line.reason)
        facts = [plain(line.cards)]
        if line.share is not None:
            facts.append(language.text("at work {share}", share=language.share(line.share)))
        if line.utilization is not None:
            share = language.share(line.utilization)
            facts.append(language.text("utilisation {share}", share=share))
        told = Text(reason)
        told.append(f"\n{' · '.join(fact for fact in facts if fact)}", style="dim")
        label = f"{line.mark} {language.text(line.label)}"
        table.add_row(Text(plain(line.server.host)), Text(label, style=_STYLES[line.verdict]), told)
    parts: list[RenderableType] = [Padding(table, (1, 0, 0, 2))]
    if len(listed) > _LINES:
        parts.append(Text("  " + language.text("and {n} more", n=len(listed) - _LINES)))
    return Group(*parts)


def _hours(report: Report, language: Language) -> RenderableType | None:
    hours = hours_section.build(report)
    if hours is None:
        return None
    lead = Text.assemble(
        "  ",
        (language.share(hours.share), "bold"),
        " " + language.text("of {total} of GPU did work", total=language.hours(hours.total)),
    )
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(no_wrap=True)
    for part in hours.parts:
        sign, style = _BARS[part.state]
        table.add_row(
            language.text(part.label),
            language.hours(part.hours),
            language.share(part.share),
            Text(sign * max(1, round(part.share * _BAR)), style=style),
        )
    parts: list[RenderableType] = [
        _heading(language.text(hours_section.SECTION.title)),
        lead,
        Padding(table, (0, 0, 0, 2)),
    ]
    if hours.causes:
        told = language.text(
            "{lost} of the time kept waiting were lost; in the rest the GPUs did work.",
            lost=language.hours(hours.lost),
        )
        parts.append(Text("  " + told, style="dim"))
    return Group(*parts)


def _owners(report: Report, language: Language) -> RenderableType | None:
    told = owners_section.build(report)
    if told is None:
        return None
    owners = Table(box=box.SIMPLE_HEAD, padding=(0, 2, 0, 0), pad_edge=False)
    owners.add_column(language.text("Owner"), overflow="fold", max_width=32)
    owners.add_column(language.text("worked"), justify="right")
    owners.add_column(language.text("kept waiting"), justify="right")
    owners.add_column(language.text("held, no work"), justify="right")
    for owner in told.first:
        name = plain(language.value(owner.name))
        if owner.kind:
            name += f" ({plain(language.value(owner.kind))})"
        owners.add_row(
            Text(name),
            language.hours(owner.worked),
            language.hours(owner.waited),
            language.hours(owner.held),
        )
    return Padding(owners, (0, 0, 0, 2))


def _followed(report: Report, language: Language) -> RenderableType | None:
    told = followed_section.build(report)
    if told is None or not told.total:
        return None
    lines = [
        _heading(language.text(followed_section.SECTION.title)),
        Text(
            "  "
            + language.text(
                "Of its {total} recommendations: {followed} followed, {gone} no longer needed,"
                " {stand} still standing.",
                total=told.total,
                followed=told.followed,
                gone=told.gone,
                stand=told.stand,
            )
        ),
    ]
    return Group(*lines)


def _actions(report: Report, language: Language) -> RenderableType | None:
    told = actions_section.build(report)
    if told is None:
        return None
    parts: list[RenderableType] = [_heading(language.text(actions_section.SECTION.title))]
    if not told.first:
        parts.append(Text("  " + language.text("Nothing needs to be done.")))
    for number, item in enumerate(told.first, 1):
        action, finding = item.action, item.action.finding
        assert finding.recommendation is not None
        body = Text(language.text(finding.recommendation), style="bold")
        body.append(
            f"\n{plain(action.server.host)} · {language.text(item.dimension)}: "
            + language.text(finding.reason),
            style="not bold",
        )
        sure = language.share(finding.confidence)
        if item.basis is not None:
            sure += f", {language.text(item.basis)}"
        pays = language.text("how sure:") + " " + sure
        if item.pays is not None:
            pays = f"{language.text(item.pays)} · {pays}"
        body.append(f"\n{pays}", style="not bold dim")
        row = Table.grid(padding=(0, 1, 0, 0))
        row.add_column(width=3, justify="right")
        row.add_column(overflow="fold")
        row.add_row(f"{number}.", body)
        parts.append(row)
    if told.more:
        parts.append(
            Text(
                "    "
                + language.plural(actions_section.MORE_ONE, actions_section.MORE_MANY, told.more),
                style="dim",
            )
        )
    return Group(*parts)


def plain(text: str) -> str:
    """Text of a machine without control characters, which a terminal would obey."""
    return "".join(c if c.isprintable() else "�" for c in text)
