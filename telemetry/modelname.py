"""What a model's written name tells: how many parameters, and how its weights are kept."""

from __future__ import annotations

import re

from telemetry.command import Command

_MODEL_OPTIONS = (
    "model_name_or_path",
    "model_path",
    "model_id",
    "base_model",
    "pretrained_model_name_or_path",
    "pretrained_checkpoint",
    "checkpoint_dir",
    "hf_repo",
    "hf_model_path",
    "model",
)
_COUNT = re.compile(r"(?<![A-Za-z0-9.])(\d{1,4}(?:\.\d{1,3})?)([BbMm])(?![A-Za-z0-9])")
# Mixture of experts written as experts times size (8x7B) or size and number of experts
# (17B-16E): the figure is not the whole model's.
_EXPERTS = re.compile(r"\d{1,3}x\d|(?<![A-Za-z0-9])\d{1,3}E(?![A-Za-z0-9])", re.IGNORECASE)
_HASH = re.compile(r"(?:sha256[:-])?[0-9a-f]{16,64}")
_CACHED = re.compile(r"models--([\w.\-]{1,96})--([\w.\-]{1,96})")

_PRECISIONS = (
    (re.compile(r"(?<![a-z0-9])((?:iq|q)\d(?:_[0-9a-z]{1,3}){1,2})(?![a-z0-9])"), None),
    (re.compile(r"(?<![a-z])(?:gptq|awq)[-_]?int8|(?<![a-z0-9])w8a(?:8|16)"), "int8"),
    (re.compile(r"(?<![a-z])awq(?![a-z])"), "awq"),
    (re.compile(r"(?<![a-z])gptq(?![a-z])"), "gptq"),
    (re.compile(r"(?<![a-z0-9])(?:nf4|bnb[-_]4bit)(?![a-z0-9])"), "nf4"),
    (re.compile(r"(?<![a-z0-9])(?:mxfp4|nvfp4|fp4)(?![a-z0-9])"), "fp4"),
    (re.compile(r"(?<![a-z0-9])(?:fp8|f8_e4m3)(?![a-z0-9])"), "fp8"),
    (re.compile(r"(?<![a-z0-9])int8(?![a-z0-9])"), "int8"),
    (re.compile(r"(?<![a-z0-9])(?:int4|w4a16)(?![a-z0-9])"), "int4"),
    (re.compile(r"(?<![a-z0-9])(?:bf16|bfloat16)(?![a-z0-9])"), "bf16"),
    (re.compile(r"(?<![a-z0-9])(?:fp16|float16|half)(?![a-z0-9])"), "fp16"),
    (re.compile(r"(?<![a-z0-9])(?:fp32|float32)(?![a-z0-9])"), "fp32"),
)


def parameters_of(name: str) -> float | None:
    """The parameter count that a model's name states, or None where it states none plainly.

    `Llama-2-70B-AWQ` is 70e9 and `Qwen3-30B-A3B` 30e9 (its total). `Mixtral-8x7B` and
    `Llama-4-Scout-17B-16E` state a part alone, and a name with two sizes is not plain.
    """
    text = name[:256]
    if _EXPERTS.search(text):
        return None
    found = [(float(number), unit.upper()) for number, unit in _COUNT.findall(text)]
    billions = {number for number, unit in found if unit == "B" and 0 < number < 5000}
    if len(billions) == 1:
        return round(billions.pop() * 1e9)
    if billions:
        return None
    # Below ten million it is a context length ("-1M") or a revision, not a size.
    millions = {number for number, unit in found if unit == "M" and number >= 10}
    return round(millions.pop() * 1e6) if len(millions) == 1 else None


def precision_in(text: str) -> str | None:
    """The precision that a name or an option's value states: awq, q4_k_m, bf16 and such."""
    lower = text[:256].lower()
    for pattern, name in _PRECISIONS:
        found = pattern.search(lower)
        if found:
            return name or found[1]
    return None


def model_of(
    command: Command, position: int | None = None, options: tuple[str, ...] = ()
) -> str | None:
    """The model's name as written: a hub's `owner/name`, or the last component of a path.

    `position` is the word that names it where the tool takes it without an option, `options` are
    the tool's own options for it.
    """
    written = command.option(*_MODEL_OPTIONS[:-1]) or command.option(_MODEL_OPTIONS[-1])
    if written is None and options:
        written = command.option(*options)
    if written is None and position is not None and position < len(command.words):
        written = command.words[position]
    return None if written is None else short_name(written)


def short_name(written: str) -> str | None:
    """A model's name without its folder; None for a content hash, which names nothing."""
    written = written.strip("\"'").rstrip("/")[:256]
    cached = _CACHED.search(written)
    if cached:
        return f"{cached[1]}/{cached[2]}"
    parts = [part for part in written.split("/") if part]
    if not parts:
        return None
    path = written.startswith(("/", ".", "~")) or len(parts) > 2
    name = parts[-1] if path else written
    return None if _HASH.fullmatch(name) else name


def precision_of(command: Command, model: str | None) -> str | None:
    """The precision of the weights, from quantisation options, the model's name, the data type."""
    for names in (("quantization", "quantize", "quant_method", "quant"), ("bnb_4bit_quant_type",)):
        value = command.option(*names)
        if value and (found := precision_in(value.replace("bitsandbytes-", ""))):
            return found
    if model and (found := precision_in(model)):
        return found
    value = command.option("dtype", "torch_dtype", "precision", "mixed_precision", "compute_type")
    if value and (found := precision_in(value)):
        return found
    for name in ("bf16", "fp16"):
        if command.flag(name):
            return name
    return None
