"""Reads a model's shape from its config.json, in the forms that model hubs publish.

What an architecture leaves out of its files is in architectures.toml. An architecture that is not
there is refused with what to give instead: a shape is never guessed.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from pathlib import Path

from advisor.catalogue.model import Model, Shape

# A shape and a published count may differ by what the shape leaves out (a vision tower: 12 % of
# Gemma-3-4B); a count further below the shape than this, or this much above, is another model's.
COUNT_BELOW = 0.03
COUNT_ABOVE = 0.35

# Nested text models, in the order in which they are looked for.
NESTED = ("text_config", "llm_config", "language_config", "thinker_config")

MOST_LAYERS = 100_000
MOST_SIZE = 1_000_000_000

SHAPE_FLAGS = (
    "--params with --layers, --hidden-size, --heads, --kv-heads, --head-dim, --vocab and "
    "--intermediate-size"
)


class ConfigError(ValueError):
    """A config.json that does not tell what a plan needs; the message says what to give."""


@cache
def architectures() -> Mapping[str, Mapping[str, object]]:
    """Each form by the model_type of its files, and of those that share it (`also`)."""
    text = resources.files(__package__).joinpath("architectures.toml").read_text(encoding="utf-8")
    forms: dict[str, Mapping[str, object]] = {}
    for name, form in tomllib.loads(text).items():
        for model_type in (name, *form.get("also", ())):
            forms[model_type] = form
    return forms


def load_config(path: Path, parameters: int | None = None) -> Model:
    """The model of a config.json file, or of a folder that holds one. Raises ConfigError."""
    file = path / "config.json" if path.is_dir() else path
    try:
        config = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{file}: {error.strerror or error}") from None
    except (UnicodeDecodeError, ValueError, RecursionError) as error:
        raise ConfigError(f"{file}: not JSON ({error}); give a config.json") from None
    if not isinstance(config, dict):
        raise ConfigError(f"{file}: a config.json holds one object; this one does not")
    name = config.get("_name_or_path") or file.resolve().parent.name
    return model_from_config(
        config, name=str(name), parameters=parameters, where=str(file), source=str(file)
    )


def model_from_config(
    config: Mapping[str, object],
    *,
    name: str,
    parameters: int | None = None,
    where: str = "config",
    source: str = "",
    verified: bool = True,
) -> Model:
    """A model from the keys of its config.json. Raises ConfigError, naming `where` and the key."""
    outer = config
    for key in NESTED:
        inner = config.get(key)
        if isinstance(inner, dict):
            config = inner
            break
    model_type = config.get("model_type") or outer.get("model_type")
    if not isinstance(model_type, str):
        raise ConfigError(f"{where}: model_type is missing; give it, or {SHAPE_FLAGS}")
    form = architectures().get(model_type)
    if form is None:
        known = ", ".join(sorted(architectures()))
        raise ConfigError(
            f"{where}: the architecture {model_type!r} is not known (known: {known}); "
            f"give the shape: {SHAPE_FLAGS}"
        )
    shape = _Reader(config, outer, form, where).shape()
    notes = []
    if parameters is None:
        parameters = shape.parameters
    else:
        check_count(shape, parameters, where)
    if outer.get("vision_config") is not None and parameters == shape.parameters:
        notes.append(
            "the vision part is not counted: give the published total with --params to include it"
        )
    return Model(
        name=name,
        parameters=max(parameters, shape.parameters),
        shape=shape,
        quant=_stored_quant(outer.get("quantization_config"), where),
        source=source,
        verified=verified,
        notes=tuple(notes),
    )


def check_count(shape: Shape, parameters: int, where: str) -> None:
    """Raises ConfigError where a parameter count cannot belong to a shape."""
    if not 1 - COUNT_BELOW <= parameters / shape.parameters <= 1 + COUNT_ABOVE:
        raise ConfigError(
            f"{where}: {parameters:,} parameters do not go with this shape, which gives "
            f"{shape.parameters:,}; correct the count or the shape"
        )


class _Reader:
    def __init__(
        self,
        config: Mapping[str, object],
        outer: Mapping[str, object],
        form: Mapping[str, object],
        where: str,
    ) -> None:
        self.config, self.outer, self.form, self.where = config, outer, form, where
        keys, defaults = form.get("keys", {}), form.get("defaults", {})
        self.keys: Mapping[str, str] = keys if isinstance(keys, dict) else {}
        self.defaults: Mapping[str, object] = defaults if isinstance(defaults, dict) else {}

    def optional(self, key: str) -> int | None:
        value = self.config.get(key)
        if value is None:
            value = self.defaults.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MOST_SIZE:
            said = repr(value) if len(repr(value)) <= 40 else repr(value)[:40] + "..."
            raise ConfigError(f"{self.where}: {key} is {said}; a whole number is expected")
        return value

    def required(self, *keys: str) -> int:
        for key in keys:
            value = self.optional(key)
            if value:
                return value
        raise ConfigError(f"{self.where}: {keys[0]} is missing; add it, or give {SHAPE_FLAGS}")

    def flag(self, key: str, otherwise: bool) -> bool:
        value = self.config.get(key)
        if value is None and key == "tie_word_embeddings":
            value = self.outer.get(key)
        if value is not None and not isinstance(value, bool):
            raise ConfigError(f"{self.where}: {key} is {value!r}; true or false is expected")
        return value if value is not None else otherwise

    def shape(self) -> Shape:
        layers = self.required("num_hidden_layers", "n_layer")
        if layers > MOST_LAYERS:
            raise ConfigError(f"{self.where}: num_hidden_layers is {layers}; that is no model")
        hidden = self.required("hidden_size", "n_embd")
        heads = self.required("num_attention_heads", "n_head")
        kv_heads = self.optional("num_key_value_heads") or heads
        if heads % kv_heads:
            raise ConfigError(
                f"{self.where}: num_attention_heads ({heads}) is no multiple of "
                f"num_key_value_heads ({kv_heads}); correct one of them"
            )
        latent = bool(self.form.get("latent"))
        head_dim = self._head_dim(hidden, heads, latent)
        experts = self.optional(self.keys.get("experts", "")) or 0
        width, divisor = self._mlp_width(experts), self.form.get("intermediate_divisor", 1)
        window, sliding = self._sliding(layers)
        expert_width, shared_width, dense_layers = self._experts(experts, layers)
        return Shape(
            layers=layers,
            hidden=hidden,
            heads=heads,
            kv_heads=kv_heads,
            head_dim=head_dim,
            vocabulary=self.required("vocab_size", "padded_vocab_size"),
            mlp_width=width // int(str(divisor)),
            mlp_matrices=int(str(self.form.get("mlp_matrices", 3))),
            tied=self.flag("tie_word_embeddings", bool(self.form.get("tied", False))),
            dense_layers=dense_layers,
            experts=experts,
            experts_per_token=self._per_token(experts),
            expert_width=expert_width,
            shared_width=shared_width,
            shared_gate=bool(self.form.get("shared_gate", False)) and experts > 0,
            latent_width=self.required("kv_lora_rank") if latent else None,
            query_latent_width=self.optional("q_lora_rank") if latent else None,
            rope_dim=self.required("qk_rope_head_dim") if latent else 0,
            value_dim=self.required("v_head_dim") if latent else None,
            window=window,
            sliding_layers=sliding,
            qkv_bias=self.flag("attention_bias", bool(self.form.get("qkv_bias", False))),
            linear_bias=bool(self.form.get("linear_bias", False)),
            norms=int(str(self.form.get("norms", 2))),
            qk_norm=bool(self.form.get("qk_norm", False)),
            max_positions=self.optional("max_position_embeddings"),
        )

    def _head_dim(self, hidden: int, heads: int, latent: bool) -> int:
        if latent:
            return self.required("qk_nope_head_dim")
        given = self.optional(self.keys.get("head_dim", "head_dim"))
        usual = self.form.get("head_dim")
        if given:
            return given
        if isinstance(usual, int):
            return usual
        if hidden % heads:
            raise ConfigError(
                f"{self.where}: hidden_size ({hidden}) does not divide by num_attention_heads "
                f"({heads}); give head_dim"
            )
        return hidden // heads

    def _mlp_width(self, experts: int) -> int:
        if experts and not self.optional("intermediate_size"):
            return 0
        return self.required("intermediate_size")

    def _per_token(self, experts: int) -> int:
        if not experts:
            return 0
        used = self.required("num_experts_per_tok", "experts_per_token")
        if used > experts:
            raise ConfigError(
                f"{self.where}: num_experts_per_tok ({used}) is more than the {experts} experts"
            )
        return used

    def _experts(self, experts: int, layers: int) -> tuple[int, int, int | None]:
        """Width of an expert, width of what all tokens use, and the dense layers."""
        if not experts:
            return 0, 0, None
        width = self.required(self.keys.get("expert_intermediate_size", "moe_intermediate_size"))
        shared = self.optional(self.keys.get("shared_intermediate_size", "")) or 0
        shared += width * (self.optional("n_shared_experts") or 0)
        listed = self.config.get("mlp_only_layers")
        only = set(listed) if isinstance(listed, list) else set()
        step = self.optional("decoder_sparse_step") or self.optional("moe_layer_freq") or 1
        first = self.optional("first_k_dense_replace") or 0
        dense = sum(
            1
            for layer in range(layers)
            if layer < first or layer in only or (step > 1 and (layer + 1) % step)
        )
        if dense and not self.optional("intermediate_size"):
            raise ConfigError(
                f"{self.where}: intermediate_size is missing, and {dense} layers are dense; add it"
            )
        return width, shared, dense

    def _sliding(self, layers: int) -> tuple[int | None, int]:
        window, rule = self.optional("sliding_window"), self.form.get("sliding")
        listed = self.config.get("layer_types")
        if rule == "above_max_window_layers" and not self.flag("use_sliding_window", False):
            return None, 0
        if not window or rule == "none":
            return None, 0
        if listed is not None and (not isinstance(listed, list) or len(listed) != layers):
            raise ConfigError(f"{self.where}: layer_types does not list the {layers} layers")
        if listed:
            return window, sum("sliding" in str(kind) for kind in listed)
        if rule == "all":
            return window, layers
        if rule == "every_other":
            return window, (layers + 1) // 2
        if rule == "interleaved":
            pattern = self.optional("sliding_window_pattern") or 1
            return window, layers - layers // pattern
        first = self.optional("max_window_layers") or 0
        return window, max(layers - first, 0)


def _stored_quant(section: object, where: str) -> str | None:
    """How the published weights are stored, in the planner's names; None for 16 bits."""
    if section is None:
        return None
    if not isinstance(section, dict):
        raise ConfigError(f"{where}: quantization_config is no object; correct or remove it")
    method, bits = str(section.get("quant_method", "")).lower(), section.get("bits")
    if method in {"awq", "gptq", "auto-round", "autoround"}:
        return "int8" if bits == 8 else ("awq" if method == "awq" else "gptq")
    if method in {"fp8", "fbgemm_fp8"}:
        return "fp8"
    if method == "mxfp4":
        return "mxfp4"
    if method == "bitsandbytes":
        if section.get("load_in_8bit"):
            return "int8"
        return "nf4-dq" if section.get("bnb_4bit_use_double_quant") else "nf4"
    if method in {"compressed-tensors", "compressed_tensors"}:
        found = _compressed_tensors(section)
        if found is not None:
            return found
    raise ConfigError(
        f"{where}: quantization_config {method or 'without quant_method'!r} is not known; "
        "say how the weights are stored with --quant"
    )


def _compressed_tensors(section: Mapping[str, object]) -> str | None:
    groups = section.get("config_groups")
    for group in groups.values() if isinstance(groups, dict) else ():
        weights = group.get("weights") if isinstance(group, dict) else None
        if isinstance(weights, dict):
            known = {"float 8": "fp8", "int 8": "int8", "int 4": "gptq"}
            return known.get(f"{weights.get('type')} {weights.get('num_bits')}")
    return None
