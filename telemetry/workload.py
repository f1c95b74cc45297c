"""What a process says of its own work: the kind of workload, its tool and its model."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from importlib import resources
from typing import Any

from telemetry.command import Command, parse
from telemetry.modelname import model_of, parameters_of, precision_of
from telemetry.redaction import redact

__all__ = ["Kind", "Match", "Method", "Signature", "Signatures", "redact"]


class Kind(StrEnum):
    """What kind of work a process does, as far as it says so.

    The broader kinds stand where the process says no more: `finetuning` without its method,
    `inference` without the sort of model, `training_or_finetuning` for a script that only says
    that it trains. `mixed` is reinforcement learning, which trains and generates.
    """

    TRAINING = "training"
    FULL_FINETUNING = "full_finetuning"
    LORA_FINETUNING = "lora_finetuning"
    QLORA_FINETUNING = "qlora_finetuning"
    FINETUNING = "finetuning"
    TRAINING_OR_FINETUNING = "training_or_finetuning"
    LLM_INFERENCE = "llm_inference"
    LIGHT_INFERENCE = "light_inference"
    INFERENCE = "inference"
    MIXED = "mixed"


_TRAINS = frozenset({Kind.FINETUNING, Kind.TRAINING_OR_FINETUNING})


@dataclass(frozen=True, slots=True)
class Match:
    """What a command line says. `evidence` is one line for people, without arguments' values.

    `parameters` is the model's count where its name states it; `precision` such as awq or bf16.
    """

    kind: Kind
    tool: str
    model: str | None
    parameters: float | None
    precision: str | None
    evidence: str


@dataclass(frozen=True, slots=True)
class Signature:
    """How a tool in one of its modes is recognised.

    `program` must match at the start of "script-or-module words", `path` anywhere in the
    program's path, `text` anywhere in the command; those that are given must all match, `unless`
    (in the command) must not. `model_at` is the word, and `model_options` are the options, that
    name the model, beside those that all tools share.
    """

    kind: Kind
    tool: str
    source: str
    program: re.Pattern[str] | None
    path: re.Pattern[str] | None
    text: re.Pattern[str] | None
    unless: re.Pattern[str] | None
    model_at: int | None
    model_options: tuple[str, ...]
    tests: tuple[str, ...]

    def fits(self, command: Command) -> bool:
        """Whether the command is this tool in this mode."""
        return (
            (self.program is None or self.program.match(command.program) is not None)
            and (self.path is None or self.path.search(command.path) is not None)
            and (self.text is None or self.text.search(command.text) is not None)
            and (self.unless is None or self.unless.search(command.text) is None)
        )


@dataclass(frozen=True, slots=True)
class Method:
    """An option that tells the method of fine-tuning; `values` empty means that it is on."""

    kind: Kind
    option: str
    values: tuple[str, ...]
    source: str
    tests: tuple[str, ...]

    def fits(self, command: Command) -> bool:
        """Whether the command has the option, not switched off, with one of the values."""
        if not self.values:
            return command.flag(self.option)
        value = command.option(self.option)
        return value is not None and value.lower() in self.values


@dataclass(frozen=True, slots=True)
class Signatures:
    """All signatures in order: the first that fits decides."""

    signatures: tuple[Signature, ...]
    methods: tuple[Method, ...]

    @classmethod
    def load(cls) -> Signatures:
        """The signatures that Talla ships (`signatures.toml`)."""
        text = resources.files("telemetry").joinpath("signatures.toml").read_text("utf-8")
        return cls.parse(tomllib.loads(text))

    @classmethod
    def parse(cls, data: Mapping[str, Any]) -> Signatures:
        """Signatures from their TOML table. Raises ValueError, KeyError or re.error."""
        signatures = tuple(
            Signature(
                kind=Kind(entry["kind"]),
                tool=entry["tool"],
                source=entry["source"],
                program=_pattern(entry, "program"),
                path=_pattern(entry, "path"),
                text=_pattern(entry, "text"),
                unless=_pattern(entry, "unless"),
                model_at=entry.get("model_at"),
                model_options=tuple(entry.get("model_options", ())),
                tests=tuple(entry["tests"]),
            )
            for entry in data["signature"]
        )
        methods = tuple(
            Method(
                kind=Kind(entry["kind"]),
                option=entry["option"],
                values=tuple(entry.get("values", ())),
                source=entry["source"],
                tests=tuple(entry["tests"]),
            )
            for entry in data["method"]
        )
        return cls(signatures, methods)

    def match(self, command: str) -> Match | None:
        """What a command line says of its work, or None where it says nothing.

        Arguments are separated by blanks or NULs. A launcher alone, an interpreter, a notebook
        and a program that nobody listed say nothing. Takes time linear in the length, of which
        at most 8,192 characters are read.
        """
        parsed = parse(command)
        if parsed is None:
            return None
        for signature in self.signatures:
            if signature.fits(parsed):
                kind = signature.kind
                method = self._method(parsed) if kind in _TRAINS else None
                model = model_of(parsed, signature.model_at, signature.model_options)
                return _match(parsed, method or kind, signature.tool, model)
        # Adapter options belong to training alone, whatever the script is called.
        method = self._method(parsed)
        if method in {Kind.LORA_FINETUNING, Kind.QLORA_FINETUNING} and self._has_adapter(parsed):
            return _match(parsed, method, "script", model_of(parsed))
        return None

    def _method(self, command: Command) -> Kind | None:
        said = {method.kind for method in self.methods if method.fits(command)}
        if Kind.FULL_FINETUNING in said:
            return Kind.FULL_FINETUNING if said == {Kind.FULL_FINETUNING} else None
        for kind in (Kind.QLORA_FINETUNING, Kind.LORA_FINETUNING):
            if kind in said:
                return kind
        return None

    def _has_adapter(self, command: Command) -> bool:
        return any(m.kind is Kind.LORA_FINETUNING and m.fits(command) for m in self.methods)


def _pattern(entry: Mapping[str, Any], name: str) -> re.Pattern[str] | None:
    return re.compile(entry[name], re.IGNORECASE) if name in entry else None


def _match(command: Command, kind: Kind, tool: str, model: str | None) -> Match:
    precision = precision_of(command, model)
    if kind is Kind.QLORA_FINETUNING and precision in {None, "bf16", "fp16", "fp32", "int4"}:
        precision = "nf4"  # the data type is that of the arithmetic; the base is kept in 4 bits
    program = redact(command.program)[:120]
    return Match(
        kind=kind,
        tool=tool,
        model=model,
        parameters=None if model is None else parameters_of(model),
        precision=precision,
        evidence=f"command: {program} ({tool}: {kind.value})",
    )
