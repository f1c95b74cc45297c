"""Finds a model by the names that people and processes use for it."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib import resources

from advisor.catalogue.config_json import model_from_config
from advisor.catalogue.model import Model

# Endings that say how a model was tuned or stored, never what its shape is.
_ENDING = re.compile(
    r"[-_.:](instruct|chat|it|pt|hf|base|thinking|preview|latest|uncensored|"
    r"awq|gptq|gguf|exl2|autoround|bnb|nf4|mxfp4|w4a16|w8a8|quantized|dynamic|marlin|turbo|"
    r"bf16|fp16|fp32|fp8|int4|int8|4bit|8bit|f16|i?q\d[\w]*|g128|128g|\d{4})$"
)
_QUANT_IN_NAME = re.compile(
    r"(awq|gptq|w4a16|w8a8|nf4|mxfp4|fp8|int8|bf16|fp16|iq4_xs|q8_0|q6_k|q5_k_m|q4_k_m|q3_k_l|q2_k)"
    r"(?![a-z0-9])"
)
_SAME_QUANT = {"w4a16": "gptq", "w8a8": "int8"}
# "Mistral-7B-Instruct-v0.3": the tuning stands before the version.
_INNER_TUNING = re.compile(r"-(instruct|chat)(?=-v\d)")


@cache
def models() -> tuple[Model, ...]:
    """Every model of the catalogue, in the order of models.toml."""
    return tuple(model for model, _ in _entries())


def find_model(name: str) -> Model | None:
    """The model behind a catalogue name, a hub name, a path or an Ollama tag; None if not known.

    "meta-llama/Llama-3.1-70B-Instruct", "TheBloke/Llama-2-70B-AWQ", "llama3.1:8b-instruct-q4_K_M"
    and ".../models--Qwen--Qwen3-8B/snapshots/abc" are all found. A name that only resembles one of
    the catalogue is not: a fine-tuned model may have any size.
    """
    index = _index()
    for part in _candidates(name):
        for wanted in _shorter(part):
            if wanted in index:
                return index[wanted]
    return None


def quant_in_name(name: str) -> str | None:
    """The quantisation that a model's name or file name states, in the planner's names."""
    found = _QUANT_IN_NAME.findall(name.casefold().replace("-", "_"))
    return _SAME_QUANT.get(found[-1], str(found[-1])) if found else None


def _candidates(name: str) -> list[str]:
    """The parts of a path or hub name that may name the model, the most telling first."""
    parts: list[str] = []
    for piece in name.strip().rstrip("/").split("/"):
        parts.append(piece.split("--")[-1] if piece.startswith("models--") else piece)
    whole = [name] if name.count("/") == 1 else []
    return whole + [part for part in reversed(parts) if part]


def _shorter(text: str) -> list[str]:
    """A name and what is left of it as its endings are taken off, each in comparable form."""
    text = text.strip().casefold().removesuffix(".gguf").removesuffix(".safetensors")
    text = _INNER_TUNING.sub("", text.removeprefix("meta-"))
    found = [_plain(text)]
    while match := _ENDING.search(text):
        text = text[: match.start()]
        found.append(_plain(text))
    return found


def _plain(text: str) -> str:
    return re.sub(r"[-_:\s]", "", text)


@cache
def _index() -> dict[str, Model]:
    index: dict[str, Model] = {}
    for model, names in _entries():
        for name in (model.name, *names):
            index.setdefault(_plain(name.casefold()), model)
    return index


@cache
def _entries() -> tuple[tuple[Model, tuple[str, ...]], ...]:
    text = resources.files(__package__).joinpath("models.toml").read_text(encoding="utf-8")
    return tuple(
        (_model(entry), tuple(entry.get("names", ()))) for entry in tomllib.loads(text)["model"]
    )


def _model(entry: dict[str, object]) -> Model:
    name, source = str(entry["name"]), str(entry["source"])
    count, config = entry.get("parameters"), entry.get("config")
    parameters = count if isinstance(count, int) else None
    verified = not entry.get("unverified", False)
    if isinstance(config, dict):
        return model_from_config(
            config,
            name=name,
            parameters=parameters,
            where=f"models.toml: {name}",
            source=source,
            verified=verified,
        )
    if parameters is None:
        raise ValueError(f"models.toml: {name} has neither parameters nor config")
    largest = entry.get("largest_layer_parameters")
    return Model(
        name=name,
        parameters=parameters,
        largest_layer_parameters=largest if isinstance(largest, int) else None,
        source=source,
        verified=verified,
    )
