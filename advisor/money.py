"""What findings are worth: in GPU-hours and kWh, and in money where the user gave prices.

Owned hardware that is freed is capacity, not cash; rented by the hour it is hours times rate; under
a flat fee nothing is saved. Figures are ranges and rounded to two digits.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from advisor.assessment import Observations
from advisor.finding import Dimension, Finding, Verdict
from advisor.message import Amount, Message, Value, say
from advisor.prices import Prices, Range, ServerPrices, spread

MONTH_HOURS = 730.0
WEEK_HOURS = 168.0
JOULES_PER_KWH = 3.6e6
DOCUMENTED_PAYBACK = say(
    "the guide's 9 to 14 months assume that an inference server works without pause"
)


@dataclass(frozen=True, slots=True)
class Energy:
    """Energy of all GPUs over the time that was seen, in kWh. `seconds` is summed over GPUs.

    `counted` is false where a card has no energy counter, so that mean power stood in for it.
    """

    kwh: float
    seconds: float
    counted: bool

    @property
    def kwh_per_gpu_week(self) -> float:
        """Of one GPU."""
        return self.kwh / self.seconds * WEEK_HOURS * 3600 if self.seconds else 0.0


def energy(observations: Observations, uuids: Iterable[str] | None = None) -> Energy | None:
    """What the GPUs took, from their counters; None where neither counter nor power was read.

    A counter that falls begins anew (the driver was loaded again); a gap between windows is not
    filled.
    """
    chosen = list(observations.gpus) if uuids is None else list(uuids)
    joules = seconds = 0.0
    counted = True
    for uuid in chosen:
        frame = observations.gpus[uuid].frame
        counter = frame.columns.get("energy_joules_total")
        power = frame.columns.get("power_watts")
        # A counter is the window's last, so that a rise between two windows is the later one's.
        if counter is not None and any(value is not None for value in counter):
            for (i, old), (j, new) in pairwise(enumerate(counter)):
                follows = frame.start[j] == frame.start[i] + frame.seconds[i]
                if follows and old is not None and new is not None and new >= old:
                    joules += new - old
                    seconds += frame.seconds[j]
        elif power is not None:
            counted = False
            for watts, length in zip(power, frame.seconds, strict=True):
                if watts is not None:
                    joules += watts * length
                    seconds += length
    return Energy(joules / JOULES_PER_KWH, seconds, counted) if seconds else None


def with_savings(
    findings: Sequence[Finding], observations: Observations | None, prices: Prices | None
) -> tuple[Finding, ...]:
    """The findings, with what they are worth where they free GPUs or leave them idle."""
    if observations is None:
        return tuple(findings)
    return tuple(_with_saving(f, observations, prices) for f in findings)


def _with_saving(finding: Finding, observations: Observations, prices: Prices | None) -> Finding:
    hours = finding.gpu_hours_per_week
    if hours is None and finding.verdict is Verdict.IDLE:
        hours = len(observations.gpus) * WEEK_HOURS
    if hours is None or finding.saving is None or finding.verdict is Verdict.ADVICE:
        return finding
    if finding.dimension not in (Dimension.OVERALL, Dimension.GPU_COUNT, Dimension.USAGE):
        return finding
    idle = finding.verdict is Verdict.IDLE
    return replace(finding, saving=saving(observations, hours, prices, whole_server=idle))


def saving(
    observations: Observations,
    gpu_hours_per_week: float,
    prices: Prices | None,
    *,
    whole_server: bool = False,
) -> Message:
    """What freeing so many GPU-hours a week is worth.

    `whole_server`: all of it could go, so that a fixed fee could be ended too.
    """
    freed = say("frees {hours} GPU-hours a week", hours=Amount(gpu_hours_per_week, "count"))
    used = energy(observations)
    if used is not None:
        # The freed cards still draw what an idle card draws, unless they are taken out.
        kwh = used.kwh_per_gpu_week * gpu_hours_per_week / WEEK_HOURS
        freed = say(
            "{freed} ({kwh} kWh a week at the cards' mean power, if they are switched off)",
            freed=freed,
            kwh=Amount(_two_digits(kwh), "count"),
        )
    table = None if prices is None else prices.of(observations.host)
    if prices is None or table is None:
        return freed
    return _priced(freed, gpu_hours_per_week, observations, prices, table, whole_server)


def _priced(
    freed: Message,
    hours: float,
    observations: Observations,
    prices: Prices,
    table: ServerPrices,
    whole_server: bool,
) -> Message:
    months = MONTH_HOURS / WEEK_HOURS
    told: dict[str, Value] = {"freed": freed, "source": prices.source}
    match table.billing:
        case "hourly":
            assert table.rent_per_gpu_hour is not None
            worth = spread(table.rent_per_gpu_hour) * (hours * months)
            return say(
                "{freed}; rented by the hour, that is {worth} a month ({source})",
                worth=_money(worth, prices),
                **told,
            )
        case "flat":
            if whole_server and table.fee_per_month is not None:
                worth = spread(table.fee_per_month)
                return say(
                    "{freed}; under a flat fee nothing is saved until the contract ends, then"
                    " {worth} a month ({source})",
                    worth=_money(worth, prices),
                    **told,
                )
            return say("{freed}; under a flat fee nothing is saved ({source})", **told)
        case "owned":
            share = hours / (len(observations.gpus) * WEEK_HOURS)
            if table.purchase is None or table.depreciation_months is None:
                return say("{freed}; owned: capacity freed, not cash ({source})", **told)
            worth = spread(table.purchase) * (share / table.depreciation_months)
            return say(
                "{freed}; owned: capacity freed, not cash, of {worth} of depreciation a month"
                " ({source})",
                worth=_money(worth, prices),
                **told,
            )


@dataclass(frozen=True, slots=True)
class Payback:
    """Months until a purchase has cost less than renting the like; None: never at this duty."""

    months: Range | None
    duty_ratio: float
    billing: str
    opex_per_month: Range

    @property
    def sentence(self) -> Message:
        """For people, with what it assumes, beside the documented figure."""
        values: dict[str, Value] = {
            "duty": Amount(self.duty_ratio, "ratio"),
            "low": Amount(_two_digits(self.opex_per_month.low), "count"),
            "high": Amount(_two_digits(self.opex_per_month.high), "count"),
            "guide": DOCUMENTED_PAYBACK,
        }
        if self.months is None:
            return say(
                "at the measured duty of {duty} and running costs of {low} to {high} a month,"
                " renting by the hour stays cheaper; {guide}",
                **values,
            )
        if math.isinf(self.months.high):
            return say(
                "pays back in {first} months at best, at worst never, at the measured duty of"
                " {duty} and running costs of {low} to {high} a month; {guide}",
                first=Amount(_two_digits(self.months.low), "count"),
                **values,
            )
        return say(
            "pays back in {first} to {last} months against renting by the hour, at the measured"
            " duty of {duty} and running costs of {low} to {high} a month; {guide}",
            first=Amount(_two_digits(self.months.low), "count"),
            last=Amount(_two_digits(self.months.high), "count"),
            **values,
        )


def payback_months(
    purchase: Range, rent_per_hour: Range, duty_ratio: float, opex_per_month: Range
) -> Range | None:
    """purchase / (rent per hour x 730 x duty - opex per month), at its best and at its worst.

    `rent_per_hour` is that of the whole server. None where renting is cheaper even at best; a
    worst that never pays back is infinite.
    """
    best = rent_per_hour.high * MONTH_HOURS * duty_ratio - opex_per_month.low
    worst = rent_per_hour.low * MONTH_HOURS * duty_ratio - opex_per_month.high
    if best <= 0:
        return None
    return Range(purchase.low / best, purchase.high / worst if worst > 0 else math.inf)


def payback(
    observations: Observations, busy_hours: float, covered_hours: float, prices: Prices
) -> Payback | None:
    """For an owned server with a purchase price and the rent of the like; None otherwise.

    Hours are GPU-hours; the duty is that of all GPUs. Electricity comes on top of the opex.
    """
    table = prices.of(observations.host)
    if table is None or table.billing != "owned" or not covered_hours:
        return None
    if table.purchase is None or table.rent_per_gpu_hour is None:
        return None
    opex = spread(table.opex_per_month or 0.0) + _electricity(observations, prices)
    duty = min(1.0, busy_hours / covered_hours)
    rent = spread(table.rent_per_gpu_hour) * len(observations.gpus)
    months = payback_months(spread(table.purchase), rent, duty, opex)
    return Payback(months, duty, "hourly", opex)


def _electricity(observations: Observations, prices: Prices) -> Range:
    """A month's electricity of the GPUs, with what the room adds; zero where it is not known."""
    used = energy(observations)
    if used is None or prices.electricity_per_kwh is None:
        return Range(0.0, 0.0)
    kwh = used.kwh_per_gpu_week / WEEK_HOURS * MONTH_HOURS * len(observations.gpus)
    return spread(prices.electricity_per_kwh) * spread(prices.pue) * kwh


def carbon_kilograms(kwh: float, prices: Prices) -> Range | None:
    """Of so much energy of the servers, with what the room adds; None without a factor."""
    if prices.carbon_grams_per_kwh is None:
        return None
    return spread(prices.carbon_grams_per_kwh) * spread(prices.pue) * (kwh / 1000.0)


def _money(worth: Range, prices: Prices) -> Message:
    low, high = _two_digits(worth.low), _two_digits(worth.high)
    if low == high:
        return say("about {sum} {currency}", sum=Amount(low, "count"), currency=prices.currency)
    return say(
        "{low} to {high} {currency}",
        low=Amount(low, "count"),
        high=Amount(high, "count"),
        currency=prices.currency,
    )


def _two_digits(value: float) -> float:
    """No false precision: two significant digits."""
    if value == 0 or not math.isfinite(value):
        return value
    digits = 1 - math.floor(math.log10(abs(value)))
    return round(value, digits)
