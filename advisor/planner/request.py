"""What is asked of the planner, checked."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from advisor.catalogue import Gpu, Model
from advisor.planner.data import Engine, PlanError, Quant, Recipe, engines, quant, recipes

Task = Literal["inference", "lora", "qlora", "full"]
TASKS: tuple[Task, ...] = ("inference", "lora", "qlora", "full")
KV_BYTES = {"bf16": 2.0, "fp16": 2.0, "fp8": 1.0}
DEFAULT_CONTEXT = 4096
DEFAULT_SEQUENCE = 2048
ZERO_STAGES = (0, 1, 2, 3)
# Beyond these a number is a slip of the pen.
MOST_TOKENS, MOST_SEQUENCES, MOST_RANK, MOST_GPUS = 100_000_000, 1_000_000, 65_536, 65_536
MOST_MEMORY = 1 << 50


@dataclass(frozen=True, slots=True)
class Request:
    """One question. Sizes in bytes and tokens; None takes the default that `plan` names.

    `users` are sequences at once and `context` the live tokens of each; `batch` and `sequence` are
    of each GPU in training. `gpu_memory_bytes` is what CUDA shows of the card, in place of a
    catalogue entry. `loss_chunks` is in how many pieces the loss is computed (1: at once).
    """

    model: Model
    task: Task = "inference"
    engine: str = "vllm"
    quant: str | None = None
    kv_dtype: str = "bf16"
    users: int | None = None
    rate_per_second: float | None = None
    latency_seconds: float | None = None
    context: int | None = None
    batch: int = 1
    sequence: int = DEFAULT_SEQUENCE
    lora_rank: int = 16
    train_embeddings: bool = False
    recipe: str = "mixed"
    zero: int | None = None
    checkpointing: bool = True
    loss_chunks: int = 1
    gpus: int | None = None
    gpu: Gpu | None = None
    gpu_memory_bytes: int | None = None
    memory_utilization: float | None = None


@dataclass(frozen=True, slots=True)
class Question:
    """A request with every default filled in and every word looked up."""

    request: Request
    model: Model
    task: Task
    engine: Engine
    quant: Quant
    kv_bytes: float
    users: int
    context: int
    recipe: Recipe
    utilization: float | None
    notes: tuple[str, ...]

    @property
    def training(self) -> bool:
        return self.task != "inference"


def check(request: Request) -> Question:
    """Fills in the defaults. Raises PlanError with one line that says what to give."""
    if request.task not in TASKS:
        raise PlanError(f"--task {request.task}: give one of {', '.join(TASKS)}")
    engine = engines().get(request.engine)
    if engine is None:
        raise PlanError(f"--engine {request.engine}: give one of {', '.join(engines())}")
    recipe = recipes().get(request.recipe)
    if recipe is None:
        raise PlanError(f"--recipe {request.recipe}: give one of {', '.join(recipes())}")
    if request.kv_dtype not in KV_BYTES:
        raise PlanError(f"--kv-dtype {request.kv_dtype}: give one of {', '.join(KV_BYTES)}")
    for flag, value, most in (
        ("--batch", request.batch, MOST_SEQUENCES),
        ("--sequence", request.sequence, MOST_TOKENS),
        ("--lora-rank", request.lora_rank, MOST_RANK),
        ("--loss-chunks", request.loss_chunks, MOST_TOKENS),
        ("--users", request.users, MOST_SEQUENCES),
        ("--context", request.context, MOST_TOKENS),
        ("--gpus", request.gpus, MOST_GPUS),
        ("--gpu-memory-bytes", request.gpu_memory_bytes, MOST_MEMORY),
    ):
        if value is not None and not 1 <= value <= most:
            raise PlanError(f"{flag} {value}: give a whole number from 1 to {most}")
    if request.zero is not None and request.zero not in ZERO_STAGES:
        raise PlanError(f"--zero {request.zero}: give a stage from 0 to 3")
    share = request.memory_utilization
    if share is not None and not 0 < share <= 1:
        raise PlanError(f"--memory-utilization {share}: give a share above 0, up to 1")
    if request.gpu is not None and request.gpu_memory_bytes is not None:
        raise PlanError("--gpu and --gpu-memory-bytes both tell the card's memory: give one")
    chosen, notes = _quant(request, recipe)
    users = _users(request, notes)
    context = _context(request, notes)
    return Question(
        request=request,
        model=request.model,
        task=request.task,
        engine=engine,
        quant=chosen,
        kv_bytes=KV_BYTES[request.kv_dtype],
        users=users,
        context=context,
        recipe=recipe,
        utilization=share if share is not None else engine.utilization,
        notes=tuple(notes),
    )


def _quant(request: Request, recipe: Recipe) -> tuple[Quant, list[str]]:
    notes: list[str] = []
    name, task = request.quant, request.task
    if name is None:
        if task == "qlora":
            name = request.model.quant or "nf4-dq"
        elif task == "inference":
            name = request.model.quant or "bf16"
        else:
            name = "fp32" if recipe.name == "fp32" else "bf16"
        if name not in ("bf16", "fp32") or task == "qlora":
            notes.append(f"weights as {name} (give --quant for another)")
    chosen = quant(name)
    if task == "full" and chosen.linear < 16:
        raise PlanError(
            f"--task full trains all weights, which {chosen.name} cannot hold: give --task qlora, "
            "or --quant bf16"
        )
    if task == "qlora" and chosen.linear >= 16 and not chosen.experts_only:
        raise PlanError(f"--task qlora needs quantised weights, not {chosen.name}: give nf4")
    if chosen.gguf and task == "inference" and request.engine != "llamacpp":
        notes.append(f"{chosen.name} is a GGUF format: llama.cpp is its engine (--engine llamacpp)")
    return chosen, notes


def _users(request: Request, notes: list[str]) -> int:
    """Sequences at once, by Little's law where a rate is given: L = rate x latency."""
    rate, latency = request.rate_per_second, request.latency_seconds
    if rate is None and latency is None:
        return request.users if request.users is not None else 1
    if request.users is not None:
        raise PlanError("--users and --rate both tell how many sequences run at once: give one")
    if rate is None or latency is None:
        missing = "--rate (requests per second)" if rate is None else "--latency (seconds)"
        raise PlanError(f"give {missing} too: sequences at once are rate times latency")
    if not (math.isfinite(rate) and math.isfinite(latency)) or rate <= 0 or latency <= 0:
        raise PlanError("--rate and --latency: give numbers above 0")
    users = max(math.ceil(rate * latency), 1)
    if users > MOST_SEQUENCES:
        raise PlanError(
            f"--rate and --latency: {users} sequences at once; at most {MOST_SEQUENCES}"
        )
    notes.append(f"{rate:g} requests/s x {latency:g} s = {users} sequences at once (Little's law)")
    return users


def _context(request: Request, notes: list[str]) -> int:
    shape = request.model.shape
    longest = shape.max_positions if shape is not None else None
    context = request.context
    if context is None:
        context = min(DEFAULT_CONTEXT, longest or DEFAULT_CONTEXT)
        if request.task == "inference" and shape is not None:
            notes.append(f"{context} live tokens a sequence assumed (--context)")
    elif longest is not None and context > longest and request.task == "inference":
        notes.append(f"{context} tokens are more than the {longest} that the model is made for")
    return context
