"""Earlier reports, kept in advisor.db so that the next one can say what has become of them.

A day has one report of a server: made again, it takes the place of the earlier one.
"""

from __future__ import annotations

import json
import logging

from advisor.errors import AdvisorError
from advisor.report.past import QUIET, Advice, Past, from_json, to_json
from advisor.report.report import Report, Server
from advisor.state import State

_LOG = logging.getLogger(__name__)
_DAY = 86_400
_KEPT_DAYS = 800
_APART = 0.5
"""The next report begins to be one after half the period that it tells: a report made twice in a
day has no news of the first."""


def recall(state: State, report: Report) -> Report:
    """The report with what the last one before it said of each server."""
    return report.after(
        {
            server.host: past
            for server in report.servers
            if (past := _last(state, server)) is not None
        }
    )


def remember(state: State, report: Report) -> None:
    """Keeps what a report says of each server that it told something of."""
    with state.transaction() as db:
        for server in report.servers:
            told = server.assessment.told
            if told.until > told.since:
                db.execute(
                    "INSERT OR REPLACE INTO past_report VALUES (?, ?, ?)",
                    (server.host, told.until // _DAY, json.dumps(to_json(past_of(server)))),
                )
        if report.told is not None:
            oldest = report.told.until // _DAY - _KEPT_DAYS
            db.execute("DELETE FROM past_report WHERE day < ?", (oldest,))


def past_of(server: Server) -> Past:
    """What a report says of a server, as it will be remembered."""
    told = server.assessment.told
    return Past(
        told.since,
        told.until,
        server.verdict,
        server.assessment.inventory,
        server.worked,
        sum(server.states.values()),
        server.lost,
        tuple(
            Advice(f.dimension, f.verdict, f.basis, f.reason, f.recommendation)
            for f in server.findings
            if f.recommendation is not None and f.verdict not in QUIET
        ),
    )


def _last(state: State, server: Server) -> Past | None:
    told = server.assessment.told
    if told.until <= told.since:
        return None
    before = told.until - _APART * (told.until - told.since)
    rows = state.rows(
        "SELECT document FROM past_report WHERE host = ? AND day <= ? ORDER BY day DESC LIMIT 2",
        (server.host, before // _DAY),
    )
    for (text,) in rows:
        try:
            past = from_json(json.loads(text))
        except (AdvisorError, KeyError, TypeError, ValueError) as error:
            _LOG.warning("an earlier report of %s cannot be read: %s", server.host, error)
            continue
        if past.until <= before:
            return past
    return None
