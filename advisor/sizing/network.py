"""Network: the documented link for the phase, and links that were seen full."""

from __future__ import annotations

from dataclasses import replace

from advisor.finding import Basis, Dimension, Evidence, Finding, Verdict
from advisor.message import Amount, say
from advisor.sizing import documented, series
from advisor.sizing.case import Case
from advisor.sizing.opinion import Opinion, settle

_DIMENSION = Dimension.NETWORK


def judge(case: Case) -> Finding:
    """Documented, and advice where a link was full for a share of the time."""
    opinions = [
        replace(o, recommendation=say("Link the server at 25 Gb/s or more."))
        if o.verdict is Verdict.UNDER
        else o
        for o in documented.opinions(case, _DIMENSION)
    ]
    if case.observations is not None and not case.too_short:
        opinions += [*_measured(case), *_unused(case)]
    unknown = say("the phase or the links' speed is not known")
    return settle(
        case, _DIMENSION, opinions, otherwise=documented.unsaid(case, _DIMENSION, unknown)
    )


def _measured(case: Case) -> list[Opinion]:
    limits = case.thresholds
    found = []
    for frame in case.frames("nic"):
        for direction in ("rx", "tx"):
            share = series.share_at_least(
                frame, f"{direction}_link_ratio", limits.number("network", "full")
            )
            if share is not None and share >= limits.number("network", "full_share"):
                found.append(
                    Opinion(
                        Verdict.ADVICE,
                        Basis.MEASURED,
                        say(
                            "the link {nic} was full in {share} of the windows",
                            nic=frame.key[1],
                            share=Amount(share, "ratio"),
                        ),
                        limits.number("confidence", "measured"),
                        evidence=(
                            Evidence(
                                f"nic.{direction}_link_ratio",
                                "share of windows above its limit",
                                round(share, 4),
                                limits.number("network", "full_share"),
                            ),
                        ),
                        recommendation=say("See under storage what this link carries."),
                    )
                )
    return found


def _unused(case: Case) -> list[Opinion]:
    """Faster links than a single inference node is asked for, that never carried anything."""
    limits = case.thresholds
    fast = [
        nic
        for nic in case.inventory.nics
        if nic.state in (None, "up")
        and (
            nic.kind == "infiniband"
            or (nic.speed_bits_per_second or 0) >= limits.number("network", "fast_bits_per_second")
        )
    ]
    if not case.only_serves or not fast or case.inventory.standby:
        return []
    frames = {frame.key[1]: frame for frame in case.frames("nic")}
    peaks = []
    for nic in fast:
        for way in ("rx", "tx"):
            fields = (f"{way}_link_ratio_max", f"{way}_link_ratio")
            frame = frames.get(nic.name)
            peak = None if frame is None else series.maximum(frame, *fields)
            if peak is None:
                return []  # a link of which nothing was seen may carry anything
            peaks.append(peak)
    limit = limits.number("network", "unused")
    if max(peaks) > limit:
        return []
    return [
        Opinion(
            Verdict.OVER,
            Basis.MEASURED,
            say(
                "{nics} never carried more than {share} of their rate",
                nics=", ".join(nic.name for nic in fast),
                share=Amount(max(peaks), "ratio"),
            ),
            limits.number("confidence", "right"),
            rule="R27",
            evidence=(Evidence("nic.link_ratio", "maximum", round(max(peaks), 4), limit),),
            recommendation=say(
                "A single inference node needs 25 to 100 Gb/s; the fast links can serve elsewhere."
            ),
        )
    ]
