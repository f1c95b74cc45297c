"""Findings in the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from advisor.finding import Dimension, Finding, Verdict

_STYLES = {
    Verdict.UNDER: "bold red",
    Verdict.OVER: "bold yellow",
    Verdict.IDLE: "bold yellow",
    Verdict.ADVICE: "cyan",
    Verdict.RIGHT: "green",
    Verdict.ABSTAIN: "dim",
}


def print_findings(findings: Sequence[Finding]) -> None:
    """A table a host: the overall verdict as its title, then a row a dimension."""
    console = Console()
    for overall in (f for f in findings if f.dimension is Dimension.OVERALL):
        title = Text(f"{overall.host}: ", style="bold")
        title.append(overall.verdict.value, style=_STYLES[overall.verdict])
        table = Table(title=title, title_justify="left", expand=True, show_lines=False)
        table.add_column("dimension", no_wrap=True)
        table.add_column("verdict", no_wrap=True)
        table.add_column("why, and what to do", ratio=1)
        table.add_column("rule", no_wrap=True)
        for finding in findings:
            if finding.host == overall.host and finding.dimension is not Dimension.OVERALL:
                why = Text(str(finding.reason))
                if finding.recommendation is not None:
                    why.append(f"\n{finding.recommendation}", style="bold")
                verdict = Text(finding.verdict.value, style=_STYLES[finding.verdict])
                table.add_row(finding.dimension.value, verdict, why, finding.rule or "")
        console.print(table)
