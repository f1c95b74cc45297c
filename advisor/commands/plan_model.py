"""Which model `talla-advisor plan` is asked about: a name, a config.json, or flags."""

from __future__ import annotations

import argparse
import difflib
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
from advisor.errors import UsageError

_NEEDED = ("layers", "hidden_size", "heads", "vocab")
_OPTIONAL = ("kv_heads", "head_dim", "intermediate_size")
MLP_MATRICES = 3


def resolve(args: argparse.Namespace) -> Model:
    """The model asked for. Raises UsageError or ConfigError, saying what to give."""
    if any(getattr(args, name) is not None for name in (*_NEEDED, *_OPTIONAL)):
        return _from_flags(args)
    if args.model is None:
        if args.params is None:
            raise UsageError("give --model (a name or a config.json), or --params with the shape")
        return Model(
            name=f"{args.params:,} parameters",
            parameters=args.params,
            largest_layer_parameters=args.largest_layer,
            source="the command line",
        )
    model = _named(args.model, args.params)
    if args.largest_layer is not None:
        model = replace(model, largest_layer_parameters=args.largest_layer)
    return model


def _named(name: str, parameters: int | None) -> Model:
    path = Path(name)
    if path.is_file() or (path / "config.json").is_file():
        return load_config(path, parameters)
    model = find_model(name)
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


def _from_flags(args: argparse.Namespace) -> Model:
    missing = [name for name in _NEEDED if getattr(args, name) is None]
    if args.intermediate_size is None and args.params is None:
        missing.append("intermediate_size")
    if missing:
        flags = ", ".join(f"--{name.replace('_', '-')}" for name in missing)
        raise UsageError(f"the shape is not whole: give {flags} too")
    for name in (*_NEEDED, *_OPTIONAL):
        value = getattr(args, name)
        if value is not None and value < 1:
            raise UsageError(f"--{name.replace('_', '-')} {value}: give a whole number from 1")
    kv_heads = args.kv_heads or args.heads
    if args.heads % kv_heads:
        raise UsageError(
            f"--heads {args.heads} is no multiple of --kv-heads {kv_heads}: correct one of them"
        )
    if args.head_dim is None and args.hidden_size % args.heads:
        raise UsageError(
            f"--hidden-size {args.hidden_size} does not divide by --heads {args.heads}: "
            "give --head-dim"
        )
    shape = Shape(
        layers=args.layers,
        hidden=args.hidden_size,
        heads=args.heads,
        kv_heads=kv_heads,
        head_dim=args.head_dim or args.hidden_size // args.heads,
        vocabulary=args.vocab,
        mlp_width=args.intermediate_size or 0,
        mlp_matrices=MLP_MATRICES,
    )
    if args.intermediate_size is None:
        rest = args.params - shape.parameters
        width = rest // (shape.layers * MLP_MATRICES * shape.hidden)
        if width < 1:
            raise UsageError(
                f"--params {args.params:,}: the shape alone has {shape.parameters:,} without its "
                "MLPs; correct one of them"
            )
        shape = replace(shape, mlp_width=width)
    parameters = args.params or shape.parameters
    check_count(shape, parameters, "--params")
    return Model(
        name=args.model or f"{parameters:,} parameters",
        parameters=max(parameters, shape.parameters),
        shape=shape,
        largest_layer_parameters=args.largest_layer,
        source="the command line",
    )
