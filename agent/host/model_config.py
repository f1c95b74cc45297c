"""What the `config.json` beside a model's weights says of it (the Hugging Face Hub's form)."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from agent.host.hostfs import HostFs, decode
from telemetry.modelname import short_name

CONFIG = "config.json"
"""The source of a model's name that is written there, and the file's name."""

_MOST_BYTES = 1 << 17
"""A few thousand bytes are usual; lists of labels make it longer."""
_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.\-]{0,63}")
_NAME = re.compile(r"[A-Za-z0-9~./][A-Za-z0-9_.\-/]{0,127}")
_MOST_HIDDEN = 1 << 20


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """`quantization` is the method, with the bits where they are told: `awq 4 bits`."""

    model: str | None = None
    architecture: str | None = None
    model_type: str | None = None
    hidden_size: int | None = None
    quantization: str | None = None

    def texts(self) -> dict[str, str]:
        """The texts of a process's row, less the model's name."""
        told = {
            "architecture": self.architecture,
            "model_type": self.model_type,
            "hidden_size": None if self.hidden_size is None else str(self.hidden_size),
            "quantization": self.quantization,
        }
        return {name: text for name, text in told.items() if text is not None}


def read_config(hostfs: HostFs, path: str) -> ModelConfig | None:
    """The file at `path`; None where there is none or it is of another form.

    Anybody may have written it: at most 128 KiB are read, and only short plain words are taken.
    """
    try:
        text = decode(hostfs.bytes(path, _MOST_BYTES))
        told = json.loads(text)
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(told, dict):
        return None
    inner = told.get("text_config")  # of models that see or hear as well
    language = inner if isinstance(inner, dict) else {}
    architectures = told.get("architectures")
    first = architectures[0] if isinstance(architectures, list) and architectures else None
    name = told.get("_name_or_path")
    written = name if isinstance(name, str) and _NAME.fullmatch(name) else None
    found = ModelConfig(
        model=None if written is None else short_name(written),
        architecture=_word(first),
        model_type=_word(told.get("model_type")),
        hidden_size=_size(told.get("hidden_size", language.get("hidden_size"))),
        quantization=_quantization(told.get("quantization_config")),
    )
    return None if found == ModelConfig() else found


def _word(value: object) -> str | None:
    return value if isinstance(value, str) and _WORD.fullmatch(value) else None


def _size(value: object) -> int | None:
    return value if type(value) is int and 0 < value <= _MOST_HIDDEN else None


def _quantization(value: object) -> str | None:
    if not isinstance(value, dict):
        return None
    method = _word(value.get("quant_method"))
    bits = value.get("bits")
    if value.get("load_in_4bit") is True:
        bits = 4
    elif value.get("load_in_8bit") is True:
        bits = 8
    if method is None or type(bits) is not int or not 0 < bits <= 32:
        return method
    return f"{method} {bits} bits"


__all__ = ["CONFIG", "ModelConfig", "read_config"]
