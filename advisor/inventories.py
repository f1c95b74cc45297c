"""Inventories as JSON become `telemetry.inventory.Inventory`, checked by pydantic."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any, get_args, get_type_hints

from pydantic import TypeAdapter, ValidationError

from advisor.errors import AdvisorError
from telemetry.inventory import Inventory


@cache
def _adapter() -> TypeAdapter[Inventory]:
    return TypeAdapter(Inventory)


@dataclass(frozen=True, slots=True)
class InventoryFile:
    """The inventories of a file, and the keys of it that this version does not know."""

    inventories: tuple[Inventory, ...]
    unknown_keys: tuple[str, ...]


def from_store(document: Mapping[str, Any], origin: Path | str) -> Inventory:
    """The inventory of a JSON object; keys that a newer agent added are passed over.

    Raises AdvisorError naming `origin` and the key where a value has the wrong type.
    """
    try:
        return _adapter().validate_python(document)
    except ValidationError as error:
        raise AdvisorError(f"{origin}: inventory: {first_error(error)}") from None


def read_file(path: Path, host: str | None = None) -> InventoryFile:
    """The file of `talla-agent inventory --json`, or a list of such objects.

    `host` is the name where the file gives none, and a GPU without a `uuid` gets the one that an
    import gives it (`imported:HOST:INDEX`). Raises AdvisorError naming file and key.
    """
    try:
        data = json.loads(path.read_text("utf-8-sig"))
    except OSError as error:
        raise AdvisorError(f"{path}: cannot be read ({error.strerror})") from None
    except (ValueError, RecursionError) as error:
        raise AdvisorError(f"{path}: is no JSON ({error})") from None
    documents = data if isinstance(data, list) else [data]
    if not documents or not all(isinstance(d, dict) for d in documents):
        raise AdvisorError(
            f"{path}: holds no inventory; expected the JSON object of talla-agent inventory --json"
        )
    for document in documents:
        _complete(document, host)
    unknown = dict.fromkeys(k for d in documents for k in _unknown(d, Inventory, ""))
    return InventoryFile(tuple(from_store(d, path) for d in documents), tuple(unknown))


def imported_uuid(host: str, index: int) -> str:
    """The key of a GPU of which only its place on its host is known."""
    return f"imported:{host}:{index}"


def index_of(uuid: str) -> int | None:
    """The index within a key that `imported_uuid` made, None for the UUID of a card."""
    place = uuid.rpartition(":")[2]
    return int(place) if uuid.startswith("imported:") and place.isdigit() else None


def _complete(document: dict[str, Any], host: str | None) -> None:
    if host is not None:
        document.setdefault("host", host)
    gpus = document.get("gpus")
    name = document.get("host")
    if isinstance(gpus, list) and isinstance(name, str):
        for place, gpu in enumerate(gpus):
            if isinstance(gpu, dict):
                index = gpu.setdefault("index", place)
                if isinstance(index, int):
                    gpu.setdefault("uuid", imported_uuid(name, index))


def _unknown(value: Any, kind: Any, at: str) -> list[str]:
    """Paths of the keys in `value` that the dataclass `kind` does not have."""
    if isinstance(value, list):
        inner = next((a for a in get_args(kind) if a is not Ellipsis and a is not type(None)), None)
        return [k for i, v in enumerate(value) for k in _unknown(v, inner, f"{at}{i}.")]
    if not isinstance(value, dict):
        return []
    kind = (
        kind if is_dataclass(kind) else next((a for a in get_args(kind) if is_dataclass(a)), None)
    )
    if kind is None:
        return []
    hints = get_type_hints(kind)
    names = {f.name for f in fields(kind)}
    found: list[str] = []
    for key, inner_value in value.items():
        if key in names:
            found += _unknown(inner_value, _inner(hints[key]), f"{at}{key}.")
        else:
            found.append(f"{at}{key}")
    return found


def _inner(hint: Any) -> Any:
    """The tuple type of `tuple[...] | None`, other hints as they are."""
    return next((a for a in get_args(hint) if getattr(a, "__origin__", None) is tuple), hint)


def first_error(error: ValidationError) -> str:
    """`key: what is expected (not what was found)`, of the first of pydantic's errors."""
    first = error.errors(include_url=False)[0]
    where = ".".join(str(part) for part in first["loc"]) or "the whole"
    more = f"; {error.error_count() - 1} more" if error.error_count() > 1 else ""
    message = first["msg"].removeprefix("Value error, ")
    if first["type"] == "unexpected_keyword_argument":
        message = "there is no such key"
    return f"{where}: {message[:1].lower()}{message[1:]}{more}"
