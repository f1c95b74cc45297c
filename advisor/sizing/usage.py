"""Usage: whether the GPUs work at all, and what holds them."""

from __future__ import annotations

from advisor.finding import Basis, Dimension, Evidence, Finding, Step, Verdict
from advisor.message import Amount, Message, say
from advisor.sizing import series
from advisor.sizing.case import Case
from advisor.sizing.opinion import Opinion, abstention, settle, too_short
from telemetry.states import Cause, State

_DIMENSION = Dimension.USAGE
_RESTART = say("Look for a hung collective: restart the job, and give it a time-out.")


def judge(case: Case) -> Finding:
    """Idle under 1 % busy; stuck, orphaned and idly held GPUs are told as advice."""
    if case.observations is None:
        return abstention(case, _DIMENSION, say("nothing was observed yet"))
    if case.too_short:
        return abstention(case, _DIMENSION, too_short(case))
    limits = case.thresholds
    covered = case.hours(*State)
    if covered <= 0:
        return abstention(case, _DIMENSION, say("no GPU was observed"))
    busy = case.hours(State.BUSY, State.STARVED)
    known = covered - case.hours(State.UNKNOWN)
    evidence = tuple(
        Evidence(state.value, "GPU-hours", round(hours, 1))
        for state in State
        if (hours := case.hours(state)) > 0
    )
    opinions = []
    if known / covered < limits.number("coverage", "ratio"):
        return abstention(
            case,
            _DIMENSION,
            say("what the GPUs did is unknown for most of the time that was covered"),
        )
    if case.idle:
        opinions.append(_idle(case, busy, covered, evidence))
    opinions += _troubles(case, covered, evidence)
    opinions += _seldom(case, busy / known, evidence)
    opinions.append(
        Opinion(
            Verdict.RIGHT,
            Basis.MEASURED,
            _worked(case, busy / covered),
            limits.number("confidence", "right"),
            evidence=evidence,
        )
    )
    return settle(case, _DIMENSION, opinions, otherwise=say("nothing was observed"))


def _idle(case: Case, busy: float, covered: float, evidence: tuple[Evidence, ...]) -> Opinion:
    stuck = case.hours(State.STUCK)
    hung = stuck > case.thresholds.number("usage", "stuck_hours")
    worked = {"busy": Amount(busy, "count"), "covered": Amount(covered, "count")}
    kept = bool(case.inventory.standby) and not hung
    return Opinion(
        Verdict.IDLE,
        Basis.MEASURED,
        say(
            "the GPUs worked {busy} of {covered} GPU-hours, and were stuck for {stuck}: busy by"
            " utilisation while nothing moved",
            stuck=Amount(stuck, "count"),
            **worked,
        )
        if hung
        else say("the GPUs worked {busy} of {covered} GPU-hours", **worked),
        case.thresholds.number("confidence", "measured"),
        rule="R39" if _is_training_node(case) and not hung else None,
        evidence=evidence,
        recommendation=None
        if kept
        else _RESTART
        if hung
        else say("Give the server other work, or let it go; power it down until then."),
        saving=None
        if kept
        else say("{hours} GPU-hours did nothing", hours=Amount(covered - busy, "count")),
    )


def _seldom(case: Case, duty: float, evidence: tuple[Evidence, ...]) -> list[Opinion]:
    """A training node that works seldom, seen for about four weeks: the guide asks for a plan."""
    limits = case.thresholds
    assert case.observations is not None
    enough = case.observations.covered_hours >= limits.number("usage", "sustained_hours")
    least = limits.number("usage", "sustained_duty")
    if not enough or duty >= least or case.inventory.standby or not _is_training_node(case):
        return []
    return [
        Opinion(
            Verdict.ADVICE,
            Basis.DOCUMENTED,
            say(
                "the GPUs worked {duty} of the hours; the guide sees sense in such a node only with"
                " a plan of sustained use",
                duty=Amount(duty, "ratio"),
            ),
            limits.number("confidence", "advice"),
            rule="R39",
            evidence=(Evidence("busy", "share of the known GPU-hours", duty, least), *evidence),
            recommendation=say(
                "Before the next purchase, compare with renting for the hours that it works."
            ),
            step=Step.FEWER_GPUS,
        )
    ]


def _is_training_node(case: Case) -> bool:
    """Whether the guide asks a plan of sustained use of it: an HGX board, or a declared trainer."""
    sxm = [card for card in case.cards if card.model is not None and card.model.form == "sxm"]
    return case.inventory.purpose == "training" or len(sxm) >= 8


def _worked(case: Case, share: float) -> Message:
    assert case.observations is not None
    levels = [
        level
        for timeline in case.observations.gpus.values()
        for level in series.known(timeline.frame, "utilization_ratio")
    ]
    if not levels:
        return say("the GPUs were at work in {share} of the windows", share=Amount(share, "ratio"))
    return say(
        "the GPUs were at work in {share} of the windows; their mean utilisation was {mean}",
        share=Amount(share, "ratio"),
        mean=Amount(sum(levels) / len(levels), "ratio"),
    )


def _troubles(case: Case, covered: float, evidence: tuple[Evidence, ...]) -> list[Opinion]:
    limits = case.thresholds
    held_limit = covered * limits.number("usage", "held_share")
    stuck_limit = limits.number("usage", "stuck_hours")
    troubles = (
        (
            case.hours(State.STUCK),
            stuck_limit,
            _RESTART,
            say("stuck: busy by utilisation while nothing moved"),
        ),
        (
            case.hours(State.ORPHAN_HELD),
            stuck_limit,
            say("Find the dead job that holds the memory; a reset of the GPU frees it."),
            say("held by no process that is alive"),
        ),
        (
            case.hours(State.IDLE_HELD),
            held_limit,
            say("Ask the owner whether the idle processes can end or share a GPU."),
            say("held idle by a live process"),
        ),
        (
            case.lost_hours(Cause.THROTTLED),
            held_limit,
            say("Look at cooling and power: the cards slow themselves down."),
            say("slowed down by heat or a power brake"),
        ),
    )
    return [
        Opinion(
            Verdict.ADVICE,
            Basis.MEASURED,
            say("{hours} GPU-hours were {what}", hours=Amount(hours, "count"), what=what),
            limits.number("confidence", "measured"),
            evidence=evidence,
            recommendation=advice,
            saving=say("{hours} GPU-hours", hours=Amount(hours, "count")),
        )
        for hours, limit, advice, what in troubles
        if hours > limit
    ]
