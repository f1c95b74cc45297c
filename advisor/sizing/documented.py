"""What the documented rules of a dimension say of a server."""

from __future__ import annotations

from advisor.finding import Basis, Dimension, Evidence, Verdict
from advisor.message import Amount, Message, say
from advisor.profiles import Rule, Status
from advisor.sizing.case import Case
from advisor.sizing.opinion import Opinion
from advisor.sizing.quantities import QUANTITIES


def opinions(case: Case, dimension: Dimension) -> list[Opinion]:
    """One opinion for each documented rule that can be checked on this server.

    A piece of advice that is met is no reason to call anything right, and says nothing.
    """
    found = []
    for rule in case.profiles.checkable(dimension, case.ruled_phases):
        value = quantity(case, rule)
        if value is not None and _concerns(case, rule):
            opinion = _opinion(case, rule, value)
            if rule.status is Status.ACTIVE or opinion.verdict is not Verdict.RIGHT:
                found.append(opinion)
    return found


def unsaid(case: Case, dimension: Dimension, unknown: Message) -> Message:
    """Why no rule speaks: the guides ask nothing here, or what they ask of is `unknown`."""
    if case.main_phase is not None and not case.profiles.checkable(dimension, case.ruled_phases):
        return say("the guides ask nothing of it for this work on a single server")
    return unknown


def quantity(case: Case, rule: Rule) -> float | None:
    """The value of a rule's quantity on this server, None where the server does not tell."""
    return None if rule.quantity is None else QUANTITIES[rule.quantity](case)


def _concerns(case: Case, rule: Rule) -> bool:
    low, high = rule.when_parameters_at_least, rule.when_parameters_at_most
    if low is not None or high is not None:
        if not case.parameters:
            return False
        largest = max(case.parameters)
        if (low is not None and largest < low) or (high is not None and largest > high):
            return False
    if rule.when_job_gpus_at_least is not None:
        jobs = QUANTITIES["job_gpus"](case)
        return jobs is not None and jobs >= rule.when_job_gpus_at_least
    return True


def _opinion(case: Case, rule: Rule, value: float) -> Opinion:
    assert rule.quantity is not None
    beyond = rule.beyond(value)
    met = rule.met(value) and not beyond
    verdict = Verdict.RIGHT if met else Verdict.ADVICE if beyond else rule.breach
    if verdict is Verdict.OVER:  # over needs a measurement that less would do
        verdict = Verdict.ADVICE
    confidence = "right" if met else "advice" if verdict is Verdict.ADVICE else "documented"
    template = (
        "as documented ({says}): {have}"
        if met
        else "below the documented profile ({says}): {have}"
        if verdict is Verdict.UNDER
        else "the guide advises {says}; here: {have}"
    )
    return Opinion(
        verdict,
        Basis.DOCUMENTED,
        say(template, says=say(rule.says), have=_amount(rule, value)),
        case.thresholds.number("confidence", confidence),
        rule=rule.id,
        precedence=rule.precedence,
        evidence=(
            Evidence(rule.quantity, "inventory", value, rule.at_most if beyond else rule.value),
        ),
    )


def _amount(rule: Rule, value: float) -> Amount | Message:
    match rule.unit:
        case "yes":
            return say("yes") if value >= 1.0 else say("no")
        case "ratio":
            amount = Amount(value, "times")
            match rule.quantity:
                case "power_feed_ratio":
                    return say("{have} the sum of the cards' power limits", have=amount)
                case "pcie_link_ratio":
                    return say("{have} the best that the card has", have=amount)
                case "ram_per_vram_ratio":
                    return say("{have} the GPUs' memory", have=amount)
            return amount
        case unit:
            return Amount(value, unit or "count")
