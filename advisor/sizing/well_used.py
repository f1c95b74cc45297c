"""Before a second card: is the first well used? Engine, batching, cache and activity, in figures.

The order of advice is the guide's: the engine and its batching, then quantisation, then sharing,
a smaller class, fewer GPUs, and buying last.
"""

from __future__ import annotations

from advisor.finding import Basis, Evidence, Step, Verdict
from advisor.message import Amount, say
from advisor.sizing import series
from advisor.sizing.case import Case
from advisor.sizing.opinion import Opinion

# Engines that serve one or a few at a time, by what they call themselves.
PLAIN_ENGINES = frozenset({"ollama", "llamacpp", "llama.cpp", "llama-server"})


def queue(case: Case) -> Opinion | None:
    """Requests that wait while the GPUs are busy: the engine first, then quantisation, then cards.

    None where nothing waited, or where the GPUs had time to spare.
    """
    limits = case.thresholds
    sums = case.busy_sums
    waiting = [v for f in case.frames("engine") for v in series.known(f, "requests_waiting")]
    if not sums or not waiting:
        return None
    peak = max(sums)
    share = sum(v >= 1.0 for v in waiting) / len(waiting)
    full = limits.number("headroom", "busy") * len(case.cards)
    if peak < full or share < limits.number("cpu", "pressed_share"):
        return None
    plain = engines(case) & PLAIN_ENGINES
    shown = (
        Evidence("engine.requests_waiting", "share of windows with one", round(share, 4)),
        Evidence("gpu.utilization_ratio", "peak of the sum over GPUs", round(peak, 3), full),
        *evidence(case),
    )
    if plain:
        return Opinion(
            Verdict.ADVICE,
            Basis.MEASURED,
            say(
                "requests waited in {share} of the windows on {engine}, which batches little:"
                " the card is not yet well used",
                share=Amount(share, "ratio"),
                engine=", ".join(sorted(plain)),
            ),
            limits.number("confidence", "measured"),
            rule="R26",
            rules=("R57",),
            precedence=0,
            evidence=shown,
            recommendation=say(
                "Serve the model with an engine that batches continuously (vLLM, SGLang,"
                " TensorRT-LLM), and look again before a card is bought."
            ),
            step=Step.ENGINE,
        )
    return Opinion(
        Verdict.UNDER,
        Basis.MEASURED,
        say(
            "requests waited in {share} of the windows while the GPUs were busy",
            share=Amount(share, "ratio"),
        ),
        limits.number("confidence", "measured"),
        rule="R19",
        rules=("R26", "R22"),
        evidence=shown,
        recommendation=say(
            "The engine batches already: try a smaller quantisation first; then add a card."
        ),
        step=Step.QUANTISATION,
    )


def engines(case: Case) -> frozenset[str]:
    """The engines that told of themselves, in lower case."""
    return frozenset(
        texts["engine"].casefold()
        for frame in case.frames("engine")
        for texts in frame.texts
        if "engine" in texts
    )


def evidence(case: Case) -> tuple[Evidence, ...]:
    """How well the cards are used: engine, P95 of cache, requests and activity."""
    shown: list[Evidence] = []
    names = engines(case)
    if names:
        shown.append(Evidence("engine", "by its own metrics", ", ".join(sorted(names))))
    for field in ("kv_cache_usage_ratio", "requests_running"):
        values = [v for f in case.frames("engine") for v in series.known(f, field)]
        if values:
            p95 = round(series.percentile(values, 0.95), 3)
            shown.append(Evidence(f"engine.{field}", "P95 of 5-minute means", p95))
    if names and case.observations is not None:
        for field in ("dram_active_ratio", "sm_active_ratio", "tensor_active_ratio"):
            values = [
                v for t in case.observations.gpus.values() for v in series.known(t.frame, field)
            ]
            if values:
                p95 = round(series.percentile(values, 0.95), 3)
                shown.append(Evidence(f"gpu.{field}", "P95 of 5-minute means", p95))
    return tuple(shown)
