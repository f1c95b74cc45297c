"""The report as JSON, for machines: English sentences, base units, what is unknown left out."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from advisor.assessment import Period
from advisor.finding import Verdict
from advisor.hours import gpu_hours_json, owner_hours_json
from advisor.report.past import Past, followed
from advisor.report.payoff import Action, actions
from advisor.report.report import Report, Server


def document(report: Report) -> dict[str, Any]:
    """`made`, `version`, `told`, `servers` by verdict, GPU-hours, actions, and each server.

    The objects under a server are those of the commands `findings`, `hours` and `phases`.
    """
    verdicts = {verdict.value: 0 for verdict in Verdict}
    for server in report.servers:
        verdicts[server.verdict.value] += 1
    gpus = [gpu for server in report.servers for gpu in server.assessment.hours]
    summary: dict[str, Any] = {
        "servers": verdicts,
        "gpu_hours": _rounded({s.value: h for s, h in report.states.items()}),
        "lost_hours": round(sum(gpu.lost_hours for gpu in gpus), 4),
    }
    head: dict[str, Any] = {
        "made": datetime.fromtimestamp(report.made, UTC).isoformat(timespec="seconds"),
        "version": report.version,
        "summary": summary,
        "actions": [_action(a) for a in actions(report)],
        "servers": [_server(s) for s in report.servers],
    }
    if report.told is not None:
        head["told"] = _period(report.told)
    return head


def _server(server: Server) -> dict[str, Any]:
    assessment = server.assessment
    document: dict[str, Any] = {
        "host": server.host,
        "verdict": server.verdict.value,
        "told": _period(assessment.told),
        "sized": _period(assessment.sized),
        "inventory": assessment.inventory.to_json(),
        "findings": [f.to_json() for f in assessment.findings],
        "hours": [gpu_hours_json(h) for h in assessment.hours],
        "owners": [owner_hours_json(o) for o in assessment.owners],
        "phases": [s.to_json() for s in assessment.segments],
    }
    if assessment.changed is not None:
        document["hardware_changed"] = {
            "time": assessment.changed.time,
            "what": [str(what) for what in assessment.changed.what],
        }
    if server.past is not None:
        document["last_report"] = _past(server, server.past)
    return document


def _past(server: Server, past: Past) -> dict[str, Any]:
    """What the last report said, and what became of it: `outcome` is one of `Outcome`."""
    assessment = server.assessment
    return {
        "since": past.since,
        "until": past.until,
        "verdict": past.verdict.value,
        "advice": [
            {
                "dimension": f.advice.dimension.value,
                "verdict": f.advice.verdict.value,
                "recommendation": str(f.advice.recommendation),
                "outcome": f.outcome.value,
            }
            for f in followed(past, assessment.inventory, assessment.findings)
        ],
    }


def _action(action: Action) -> dict[str, Any]:
    finding = action.finding
    found = {
        "host": action.server.host,
        "dimension": finding.dimension.value,
        "verdict": finding.verdict.value,
        "basis": None if finding.basis is None else finding.basis.value,
        "recommendation": str(finding.recommendation),
        "reason": str(finding.reason),
        "confidence": finding.confidence,
        "frees": action.frees,
        "gpu_hours_per_week": None
        if action.gpu_hours_per_week is None
        else round(action.gpu_hours_per_week, 2),
    }
    return {name: value for name, value in found.items() if value is not None}


def _period(period: Period) -> dict[str, int]:
    return {"since": period.since, "until": period.until}


def _rounded(hours: dict[str, float]) -> dict[str, float]:
    return {name: round(value, 4) for name, value in hours.items()}
