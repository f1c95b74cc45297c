"""`talla-advisor plan`: memory and cards for a model and a task."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from advisor.commands.plan_numbers import number, whole
from advisor.errors import AdvisorError, UsageError

if TYPE_CHECKING:
    from advisor.catalogue import Model
    from advisor.planner import Plan, Request

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
    what.add_argument("--params", metavar="N", help="parameters: 7000000000, 7e9, 7B")
    what.add_argument("--task", default="inference", help="inference, lora, qlora or full")
    what.add_argument("--engine", default="vllm", help="vllm, hf, sglang or llamacpp")
    what.add_argument("--quant", metavar="Q", help="how the weights are stored (bf16, awq, ...)")
    what.add_argument("--kv-dtype", default="bf16", metavar="D", help="bf16, fp16 or fp8")
    what.add_argument("--compare", metavar="Q,Q", help="the same with other quantisations")
    load = parser.add_argument_group("load of inference")
    load.add_argument("--users", metavar="N", help="sequences at once")
    load.add_argument("--context", metavar="C", help="live tokens of each, or max")
    load.add_argument("--rate", metavar="R", help="requests per second")
    load.add_argument("--latency", metavar="S", help="seconds that a request takes")
    load.add_argument("--memory-utilization", metavar="U", help="share of a card")
    training = parser.add_argument_group("training")
    training.add_argument("--batch", default="1", metavar="B", help="of each GPU")
    training.add_argument("--sequence", default="2048", metavar="S", help="tokens")
    training.add_argument("--lora-rank", default="16", metavar="R")
    training.add_argument("--recipe", default="mixed", help="mixed, pure-bf16, adam8bit or fp32")
    training.add_argument("--zero", metavar="0..3", help="ZeRO stage")
    training.add_argument(
        "--no-gradient-checkpointing", action="store_true", help="keep all activations"
    )
    training.add_argument(
        "--loss-chunks", default="1", metavar="N", help="pieces of a chunked loss"
    )
    training.add_argument(
        "--train-embeddings", action="store_true", help="adapters and embeddings (modules_to_save)"
    )
    cards = parser.add_argument_group("cards")
    cards.add_argument("--gpus", metavar="N", help="how many")
    cards.add_argument("--gpu", metavar="NAME", help="which")
    cards.add_argument("--gpu-memory-bytes", metavar="N", help="what CUDA shows of one")
    shape = parser.add_argument_group("shape of a model without a config.json")
    for name, text in _SHAPE:
        shape.add_argument(f"--{name.replace('_', '-')}", metavar="N", help=text)
    shape.add_argument("--largest-layer", metavar="N", help="parameters of the largest layer")
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
        if " mig " in args.gpu.casefold():
            raise UsageError(
                f"--gpu {args.gpu}: a part of a card; give its memory with --gpu-memory-bytes"
            )
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
    return Request(
        model=model,
        task=args.task,
        engine=args.engine,
        quant=quant,
        kv_dtype=args.kv_dtype,
        users=whole(args, "users"),
        rate_per_second=number(args, "rate"),
        latency_seconds=number(args, "latency"),
        context=_context(args, model),
        batch=whole(args, "batch") or 1,
        sequence=whole(args, "sequence") or 1,
        lora_rank=whole(args, "lora_rank") or 1,
        train_embeddings=args.train_embeddings,
        recipe=args.recipe,
        zero=whole(args, "zero", least=0),
        checkpointing=not args.no_gradient_checkpointing,
        loss_chunks=whole(args, "loss_chunks") or 1,
        gpus=whole(args, "gpus"),
        gpu=gpu,
        gpu_memory_bytes=whole(args, "gpu_memory_bytes"),
        memory_utilization=number(args, "memory_utilization"),
    )


def _context(args: argparse.Namespace, model: Model) -> int | None:
    """Tokens, or the most that the model is made for."""
    if args.context is None or args.context.casefold() != "max":
        return whole(args, "context")
    if model.shape is None or model.shape.max_positions is None:
        raise UsageError("--context max: the model does not tell its longest; give the tokens")
    return model.shape.max_positions
