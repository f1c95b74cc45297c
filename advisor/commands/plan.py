"""`talla-advisor plan`: memory and cards for a model and a task."""

from __future__ import annotations

import argparse
import json
import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from advisor.errors import AdvisorError, UsageError

if TYPE_CHECKING:
    from advisor.planner import Plan, Request

_UNITS = {"k": 10**3, "m": 10**6, "b": 10**9, "t": 10**12}
_SHAPE = (
    ("layers", "layers"),
    ("hidden_size", "hidden size"),
    ("heads", "attention heads"),
    ("kv_heads", "key and value heads (default: as many as heads)"),
    ("head_dim", "size of a head (default: hidden size / heads)"),
    ("vocab", "vocabulary"),
    ("intermediate_size", "width of the MLP (default: what --params leaves)"),
)


def add_parser(subparsers: argparse._SubParsersAction[Any]) -> None:
    parser = subparsers.add_parser(
        "plan",
        help="memory and GPUs for a model",
        description="Will a model fit, and on what: memory by arithmetic, with its sources.",
    )
    what = parser.add_argument_group("what is run")
    what.add_argument(
        "--model", metavar="M", help="catalogue name, hub name, or path of a config.json"
    )
    what.add_argument("--params", type=_count, metavar="N", help="parameters: 7000000000, 7e9, 7B")
    what.add_argument("--task", default="inference", help="inference, lora, qlora or full")
    what.add_argument("--engine", default="vllm", help="vllm, hf, sglang or llamacpp")
    what.add_argument("--quant", metavar="Q", help="how the weights are stored (bf16, awq, ...)")
    what.add_argument("--kv-dtype", default="bf16", metavar="D", help="bf16, fp16 or fp8")
    what.add_argument("--compare", metavar="Q,Q", help="the same with other quantisations")
    load = parser.add_argument_group("load of inference")
    load.add_argument("--users", type=int, metavar="N", help="sequences at once")
    load.add_argument("--context", type=_context, metavar="C", help="live tokens of each, or max")
    load.add_argument("--rate", type=float, metavar="R", help="requests per second")
    load.add_argument("--latency", type=float, metavar="S", help="seconds that a request takes")
    load.add_argument("--memory-utilization", type=float, metavar="U", help="share of a card")
    training = parser.add_argument_group("training")
    training.add_argument("--batch", type=int, default=1, metavar="B", help="of each GPU")
    training.add_argument("--sequence", type=int, default=2048, metavar="S", help="tokens")
    training.add_argument("--lora-rank", type=int, default=16, metavar="R")
    training.add_argument("--recipe", default="mixed", help="mixed, pure-bf16, adam8bit or fp32")
    training.add_argument("--zero", type=int, metavar="0..3", help="ZeRO stage")
    training.add_argument(
        "--no-gradient-checkpointing", action="store_true", help="keep all activations"
    )
    training.add_argument(
        "--loss-chunks", type=int, default=1, metavar="N", help="pieces of a chunked loss"
    )
    training.add_argument(
        "--train-embeddings", action="store_true", help="adapters and embeddings (modules_to_save)"
    )
    cards = parser.add_argument_group("cards")
    cards.add_argument("--gpus", type=int, metavar="N", help="how many")
    cards.add_argument("--gpu", metavar="NAME", help="which")
    cards.add_argument("--gpu-memory-bytes", type=int, metavar="N", help="what CUDA shows of one")
    shape = parser.add_argument_group("shape of a model without a config.json")
    for name, text in _SHAPE:
        shape.add_argument(f"--{name.replace('_', '-')}", type=int, metavar="N", help=text)
    shape.add_argument(
        "--largest-layer", type=_count, metavar="N", help="parameters of the largest layer"
    )
    output = parser.add_argument_group("output")
    output.add_argument("--json", action="store_true", help="print JSON")
    output.add_argument("--explain", action="store_true", help="how each number was computed")
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    """Plans, and prints the answer. Raises UsageError with one line that says what to give."""
    from advisor.catalogue import ConfigError
    from advisor.commands import plan_view
    from advisor.planner import PlanError, plan

    try:
        request = _request(args)
        answer = plan(request)
        others = _others(args.compare, request)
    except ConfigError as error:
        raise AdvisorError(str(error)) from None
    except PlanError as error:
        raise UsageError(str(error)) from None
    if args.json:
        document = plan_view.document(answer)
        if others:
            document["compare"] = [
                {"quant": other.question.quant.name, **plan_view.document(other)}
                for other in others
            ]
        print(json.dumps(document, indent=2, ensure_ascii=False))
        return 0
    plan_view.show(answer, others, explain=args.explain)
    return 0


def _others(names: str | None, request: Request) -> list[Plan]:
    from advisor.planner import plan

    wanted = [name.strip() for name in (names or "").split(",") if name.strip()]
    return [plan(replace(request, quant=name)) for name in wanted]


def _request(args: argparse.Namespace) -> Request:
    from advisor.catalogue import find_gpu, quant_in_name, suggest_gpus
    from advisor.commands.plan_model import resolve
    from advisor.planner import Request

    model = resolve(args)
    gpu = None
    if args.gpu is not None:
        gpu = find_gpu(args.gpu)
        if gpu is None:
            meant = ", ".join(found.name for found in suggest_gpus(args.gpu))
            hint = f"did you mean {meant}?" if meant else "see talla-advisor gpus"
            raise UsageError(f"--gpu {args.gpu}: not in the catalogue; {hint}")
    quant = args.quant
    if quant is None and args.model is not None and model.quant is None:
        stated = quant_in_name(args.model)
        if args.task == "inference" or (args.task == "qlora" and stated not in ("bf16", "fp16")):
            quant = stated
    context = args.context
    if context == 0:  # "max"
        if model.shape is None or model.shape.max_positions is None:
            raise UsageError("--context max: the model does not tell; give the tokens")
        context = model.shape.max_positions
    return Request(
        model=model,
        task=args.task,
        engine=args.engine,
        quant=quant,
        kv_dtype=args.kv_dtype,
        users=args.users,
        rate_per_second=args.rate,
        latency_seconds=args.latency,
        context=context,
        batch=args.batch,
        sequence=args.sequence,
        lora_rank=args.lora_rank,
        train_embeddings=args.train_embeddings,
        recipe=args.recipe,
        zero=args.zero,
        checkpointing=not args.no_gradient_checkpointing,
        loss_chunks=args.loss_chunks,
        gpus=args.gpus,
        gpu=gpu,
        gpu_memory_bytes=args.gpu_memory_bytes,
        memory_utilization=args.memory_utilization,
    )


def _count(text: str) -> int:
    """ "7B", "7e9" or "7000000000" as a whole number above 0."""
    number, factor = text.strip().casefold(), 1
    if number and number[-1] in _UNITS:
        factor, number = _UNITS[number[-1]], number[:-1]
    try:
        value = float(number) * factor
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or not 1 <= value <= 1e16:
        raise argparse.ArgumentTypeError(f"{text!r}: give a count such as 7000000000, 7e9 or 7B")
    return round(value)


def _context(text: str) -> int:
    """Tokens, or 0 for "max"."""
    if text.casefold() == "max":
        return 0
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: give a number of tokens, or max")
    return value
