"""`talla-advisor models`: the model catalogue."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from advisor.catalogue import Model


def add_parser(subparsers: argparse._SubParsersAction[Any]) -> None:
    parser = subparsers.add_parser("models", help="the models that Talla knows, with sources")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    """Prints every model of the catalogue."""
    from advisor.catalogue import models
    from advisor.planner import kv_bytes_per_token

    if args.json:
        print(json.dumps([_document(model) for model in models()], indent=2, ensure_ascii=False))
        return 0
    from rich.console import Console
    from rich.table import Table

    table = Table()
    table.add_column("model")
    for heading in ("parameters", "layers", "KV heads", "KiB a token", "tokens, at most"):
        table.add_column(heading, justify="right")
    table.add_column("source", overflow="fold")
    for model in models():
        shape, token = model.shape, kv_bytes_per_token(model)
        longest = shape.max_positions if shape is not None else None
        table.add_row(
            model.name,
            f"{model.parameters / 1e9:,.2f} B",
            "-" if shape is None else str(shape.layers),
            "-" if shape is None else ("latent" if shape.latent_width else str(shape.kv_heads)),
            "-" if token is None else f"{token / 1024:g}",
            "-" if longest is None else f"{longest:,}",
            model.source + ("" if model.verified else " (not confirmed)"),
        )
    Console().print(table)
    return 0


def _document(model: Model) -> dict[str, object]:
    from advisor.planner import kv_bytes_per_token

    shape = model.shape
    told: dict[str, object | None] = {
        "name": model.name,
        "parameters": model.parameters,
        "layers": shape.layers if shape is not None else None,
        "hidden_size": shape.hidden if shape is not None else None,
        "heads": shape.heads if shape is not None else None,
        "kv_heads": shape.kv_heads if shape is not None else None,
        "experts": shape.experts or None if shape is not None else None,
        "kv_bytes_per_token": kv_bytes_per_token(model),
        "max_positions": shape.max_positions if shape is not None else None,
        "quant": model.quant,
        "source": model.source,
        "verified": model.verified,
    }
    return {name: value for name, value in told.items() if value is not None}
