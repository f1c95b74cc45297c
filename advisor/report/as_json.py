"""The report as JSON, for machines: English sentences, base units, what is unknown left out."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from advisor.assessment import GpuHours, OwnerHours, Period
from advisor.finding import Verdict
from advisor.phase import Segment
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
    return {
        "host": server.host,
        "verdict": server.verdict.value,
        "told": _period(assessment.told),
        "sized": _period(assessment.sized),
        "inventory": assessment.inventory.to_json(),
        "findings": [f.to_json() for f in assessment.findings],
        "hours": [_hours(h) for h in assessment.hours],
        "owners": [_owner(o) for o in assessment.owners],
        "phases": [_segment(s) for s in assessment.segments],
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


def _hours(hours: GpuHours) -> dict[str, Any]:
    return {
        "host": hours.host,
        "gpu_uuid": hours.gpu_uuid,
        "hours": _rounded({s.value: h for s, h in hours.hours.items()}),
        "causes": _rounded({c.value: h for c, h in hours.causes.items()}),
        "lost_hours": round(hours.lost_hours, 4),
        "coverage_ratio": round(hours.coverage_ratio, 4),
    }


def _owner(owner: OwnerHours) -> dict[str, Any]:
    return {
        "owner": owner.owner,
        "owner_kind": owner.owner_kind,
        "hours": _rounded({s.value: h for s, h in owner.hours.items()}),
    }


def _segment(segment: Segment) -> dict[str, Any]:
    found = {
        "host": segment.host,
        "gpu_uuid": segment.gpu_uuid,
        "start": segment.start,
        "end": segment.end,
        "phase": segment.phase.value,
        "confidence": round(segment.confidence, 4),
        "evidence": list(segment.evidence),
        "model": segment.model,
        "model_source": segment.model_source,
        "parameters": segment.parameters,
    }
    return {name: value for name, value in found.items() if value is not None}
