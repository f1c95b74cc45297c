"""How a plan is told: as JSON for programs, as tables for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from advisor.planner import PARTS, Fit, Plan

if TYPE_CHECKING:
    from rich.console import Console

GUIDES = {
    "servers": "Servidores GPU: entrenamiento vs inferencia IA",
    "vps": "GPU VPS para entrenamiento e inferencia de IA: guía práctica 2026",
}
SHOWN = 8  # choices in the terminal; JSON holds all
_LABELS = {
    "weights_bytes": "weights",
    "kv_cache_bytes": "KV cache",
    "activation_bytes": "activations, logits",
    "optimizer_bytes": "optimiser",
    "gradient_bytes": "gradients",
    "adapter_bytes": "adapters",
    "overhead_bytes": "overhead",
}
_UNKNOWN_WITHOUT_SHAPE = ("kv_cache_bytes", "activation_bytes")


def document(plan: Plan) -> dict[str, object]:
    """The plan in the shape that programs read. A part that does not apply is 0; one that is not
    known is not there."""
    question = plan.question
    found: dict[str, object] = {
        "model": question.model.name,
        "parameters": question.model.parameters,
        "task": question.task,
        "engine": question.engine.name,
        "quant": question.quant.name,
        "gpus": plan.gpus,
    }
    for name in PARTS:
        value = plan.bytes_of(name)
        if value is None and not plan.complete and name in _UNKNOWN_WITHOUT_SHAPE:
            continue
        found[name] = value or 0
    found["total_bytes"] = plan.total_bytes
    found["per_gpu_bytes"] = plan.per_gpu_bytes
    if plan.transient_bytes:
        found["transient_bytes"] = plan.transient_bytes
    found["complete"] = plan.complete
    found["fits"] = [_fit(fit) for fit in plan.fits]
    if plan.does_not_fit:
        found["does_not_fit"] = [_fit(fit) for fit in plan.does_not_fit]
    if plan.smaller_quants:
        found["smaller_quants"] = list(plan.smaller_quants)
    found["documents"] = [
        {
            "id": claim.id,
            "rule": claim.rule,
            "document": GUIDES[claim.guide],
            "says": claim.says,
            "computed": claim.computed,
            "verdict": claim.verdict,
        }
        for claim in plan.claims
    ]
    found["explanation"] = {part.name: part.how for part in plan.parts}
    found["notes"] = list(plan.notes)
    return found


def _fit(fit: Fit) -> dict[str, object]:
    told: dict[str, object | None] = {
        "gpu": fit.gpu,
        "count": fit.count,
        "total_memory_bytes": fit.total_memory_bytes,
        "need_per_gpu_bytes": fit.need_per_gpu_bytes,
        "usable_per_gpu_bytes": fit.usable_per_gpu_bytes,
        "headroom_ratio": round(fit.headroom_ratio, 4),
        "kv_cache_available_bytes": fit.kv_cache_available_bytes,
        "kv_cache_tokens": fit.kv_cache_tokens,
        "decode_tokens_per_second_ceiling": _rounded(fit.decode_tokens_per_second_ceiling),
        "meets_documented_profile": fit.meets_documented_profile,
        "notes": list(fit.notes),
    }
    return {name: value for name, value in told.items() if value is not None}


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 1)


def show(plan: Plan, others: Sequence[Plan], *, explain: bool) -> None:
    """Prints the plan as tables."""
    from rich.console import Console

    console = Console(highlight=False)
    _parts(console, plan, explain)
    if others:
        _comparison(console, others)
    _choices(console, plan)
    for claim in plan.claims:
        word = "holds here" if claim.verdict == "holds" else "[bold]fails here[/bold]"
        console.print(f"{claim.id} {word}: «{claim.says}» ({GUIDES[claim.guide]})")
        console.print(f"   computed: {claim.computed}")
    for note in plan.notes:
        console.print(f"- {note}")


def _parts(console: Console, plan: Plan, explain: bool) -> None:
    from rich.table import Table

    question = plan.question
    title = f"{question.model.name}, {question.task}, {question.quant.name}"
    if not question.training:
        title += f", {question.engine.name}: {question.users} x {question.context} live tokens"
    table = Table(title=title, title_justify="left", min_width=len(title))
    table.add_column("part")
    table.add_column("GiB", justify="right")
    if plan.gpus > 1:
        table.add_column("GiB a GPU", justify="right")
    if explain:
        table.add_column("how", overflow="fold")
    for part in plan.parts:
        row = [_LABELS[part.name], _gib(part.bytes)]
        row += [_gib(part.per_gpu_bytes)] if plan.gpus > 1 else []
        table.add_row(*row, *([part.how] if explain else []))
    table.add_section()
    row = ["total", f"[bold]{_gib(plan.total_bytes)}[/bold]"]
    row += [_gib(plan.per_gpu_bytes)] if plan.gpus > 1 else []
    table.add_row(*row, *([f"{plan.total_bytes:,} bytes"] if explain else []))
    console.print(table)
    if explain and question.model.source:
        console.print(f"model: {question.model.source}; {question.quant.source}")


def _comparison(console: Console, plans: Sequence[Plan]) -> None:
    from rich.table import Table

    table = Table(title="the same with", title_justify="left")
    for heading in ("weights as", "weights, GiB", "total, GiB", "smallest that fits"):
        table.add_column(heading, justify="left" if "that" in heading else "right")
    for plan in plans:
        smallest = plan.fits[0] if plan.fits else None
        table.add_row(
            plan.question.quant.name,
            _gib(plan.bytes_of("weights_bytes") or 0),
            _gib(plan.total_bytes),
            f"{smallest.count} x {smallest.gpu}" if smallest is not None else "none",
        )
    console.print(table)


def _choices(console: Console, plan: Plan) -> None:
    from rich.table import Table

    if plan.does_not_fit:
        fit = plan.does_not_fit[0]
        short = fit.need_per_gpu_bytes - fit.usable_per_gpu_bytes
        console.print(
            f"[bold]does not fit[/bold] {fit.count} x {fit.gpu}: {_gib(short)} GiB short on each "
            f"({_gib(fit.need_per_gpu_bytes)} of {_gib(fit.usable_per_gpu_bytes)} GiB usable)"
        )
        if plan.smaller_quants:
            console.print(f"  there it fits with --quant {' or '.join(plan.smaller_quants)}")
        if not plan.fits:
            console.print("  leave --gpu and --gpus out to see what does fit")
    if not plan.fits:
        if not plan.does_not_fit:
            console.print("[bold]no choice of the catalogue fits[/bold] in one server of 8 GPUs")
        return
    shown = _worth_showing(plan.fits)
    letters: dict[str, str] = {}
    speed = any(fit.decode_tokens_per_second_ceiling is not None for fit in shown)
    table = Table(title="smallest choices that fit", title_justify="left")
    table.add_column("cards")
    for heading in ("GiB", "free"):
        table.add_column(heading, justify="right")
    if speed:
        table.add_column("KV tokens", justify="right")
        table.add_column("tokens/s each,\nat most", justify="right")
    table.add_column("as in\nthe guides")
    table.add_column("notes")
    for fit in shown:
        meets = {True: "yes", False: "no", None: "-"}[fit.meets_documented_profile]
        row = [f"{fit.count} x {fit.gpu}", _gib(fit.total_memory_bytes)]
        row += [f"{fit.headroom_ratio:.0%}"]
        if speed:
            ceiling, tokens = fit.decode_tokens_per_second_ceiling, fit.kv_cache_tokens
            row += [f"{tokens:,}" if tokens is not None else "-"]
            row += [f"{ceiling:,.0f}" if ceiling is not None else "-"]
        marks = [letters.setdefault(note, _letter(len(letters))) for note in fit.notes]
        table.add_row(*row, meets, " ".join(marks))
    console.print(table)
    for note, letter in letters.items():
        console.print(f"  {letter}  {note}")
    if len(plan.fits) > len(shown):
        console.print(f"{len(plan.fits) - len(shown)} more choices fit (--json lists all)")
    if speed:
        console.print("tokens/s: a ceiling from memory bandwidth alone, never a forecast")


def _worth_showing(fits: Sequence[Fit]) -> list[Fit]:
    """The smallest of the choices that the guides document, and the smallest of all."""
    documented = [fit for fit in fits if fit.meets_documented_profile][: SHOWN // 2]
    others = [fit for fit in fits if fit not in documented]
    chosen = documented + others[: SHOWN - len(documented)]
    return [fit for fit in fits if fit in chosen]


def _letter(index: int) -> str:
    return chr(ord("a") + index) if index < 26 else f"n{index}"


def _gib(value: int) -> str:
    return f"{value / (1 << 30):,.2f}"
