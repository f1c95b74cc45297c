"""Which model `talla-advisor plan` is asked about: a name, a config.json, or flags."""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from advisor.catalogue import (
    ConfigError,
    Model,
    Shape,
    check_count,
    find_model,
    load_config,
    models,
)
from advisor.commands.plan_numbers import count, whole
from advisor.errors import UsageError

_NEEDED = ("layers", "hidden_size", "heads", "vocab")
_OPTIONAL = ("kv_heads", "head_dim", "intermediate_size")
MLP_MATRICES = 3


def resolve(args: argparse.Namespace) -> Model:
    """The model asked for. Raises UsageError or ConfigError, saying what to give."""
    parameters, largest = count(args, "params"), count(args, "largest_layer")
    sizes = {name: whole(args, name) for name in (*_NEEDED, *_OPTIONAL)}
    if any(value is not None for value in sizes.values()):
        return _from_flags(args.model, sizes, parameters, largest)
    if args.model is not None:
        model = _named(args.model, parameters)
        return model if largest is None else replace(model, largest_layer_parameters=largest)
    if parameters is None:
        raise UsageError("give --model (a name or a config.json), or --params with the shape")
    return Model(
        name=f"{parameters:,} parameters",
        parameters=parameters,
        largest_layer_parameters=largest,
        source="the command line",
    )


def _named(name: str, parameters: int | None) -> Model:
    path = Path(name)
    try:
        (path / "config.json").stat()
    except PermissionError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror})") from None
    except OSError:
        pass
    if (path.is_file() and path.suffix == ".json") or (path / "config.json").is_file():
        return load_config(path, parameters)
    model = find_model(name)  # the name of a weights file may tell: llama-3.1-8b-q4_k_m.gguf
    if model is None and path.is_file():
        return load_config(path, parameters)
    if model is None:
        if name.endswith(".json"):
            raise ConfigError(f"{name}: no such file; give the path of a config.json")
        known = {item.name.casefold(): item.name for item in models()}
        near = difflib.get_close_matches(name.rsplit("/", 1)[-1].casefold(), known, n=3)
        hint = f"did you mean {', '.join(known[item] for item in near)}? Else " if near else ""
        raise UsageError(
            f"--model {name}: not in the catalogue (talla-advisor models); {hint}give the path of "
            "its config.json, or --params with --layers, --hidden-size, --heads and --vocab"
        )
    if parameters is None:
        return model
    if model.shape is not None:
        check_count(model.shape, parameters, f"--params with {model.name}")
    return replace(model, parameters=parameters)


def _from_flags(
    name: str | None, sizes: Mapping[str, int | None], parameters: int | None, largest: int | None
) -> Model:
    missing = [size for size in _NEEDED if sizes[size] is None]
    if sizes["intermediate_size"] is None and parameters is None:
        missing.append("intermediate_size")
    if missing:
        flags = ", ".join(f"--{size.replace('_', '-')}" for size in missing)
        raise UsageError(f"the shape is not whole: give {flags} too")
    layers, hidden = sizes["layers"] or 0, sizes["hidden_size"] or 0
    heads = sizes["heads"] or 0
    kv_heads = sizes["kv_heads"] or heads
    if heads % kv_heads:
        raise UsageError(
            f"--heads {heads} is no multiple of --kv-heads {kv_heads}: correct one of them"
        )
    if sizes["head_dim"] is None and hidden % heads:
        raise UsageError(
            f"--hidden-size {hidden} does not divide by --heads {heads}: give --head-dim"
        )
    shape = Shape(
        layers=layers,
        hidden=hidden,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=sizes["head_dim"] or hidden // heads,
        vocabulary=sizes["vocab"] or 0,
        mlp_width=sizes["intermediate_size"] or 0,
        mlp_matrices=MLP_MATRICES,
    )
    if sizes["intermediate_size"] is None and parameters is not None:
        width = (parameters - shape.parameters) // (layers * MLP_MATRICES * hidden)
        if width < 1:
            raise UsageError(
                f"--params {parameters:,}: the shape alone has {shape.parameters:,} without its "
                "MLPs; correct one of them"
            )
        shape = replace(shape, mlp_width=width)
    if parameters is not None:
        check_count(shape, parameters, "--params")
    return Model(
        name=name or f"{parameters or shape.parameters:,} parameters",
        parameters=max(parameters or 0, shape.parameters),
        shape=shape,
        largest_layer_parameters=largest,
        source="the command line",
    )
