"""The model that a process works on, from its files: weights that it holds, YAML that it names."""

from __future__ import annotations

import os
import posixpath
import re
from dataclasses import dataclass

from agent.host.hostfs import HostFs, decode, unescape
from agent.host.model_config import CONFIG, ModelConfig, read_config
from telemetry.modelname import short_name
from telemetry.workload import Kind

WEIGHTS, YAML = "weight files", "configuration file"
"""Sources of a model's name."""

_WEIGHTS = re.compile(r"/.*\.(?:safetensors|gguf)")
# The Hub's cache keeps files by their hash, and names them by links in snapshots/REVISION
# (huggingface.co/docs/huggingface_hub/guides/manage-cache).
_BLOB = re.compile(r"(/.*/models--[^/]+)/blobs/([0-9a-f]{64})")
_MOST_REVISIONS = 16
_SHARD = re.compile(r"-\d{5}-of-\d{5}$")
_PLAIN = ("model", "pytorch_model", "consolidated", "adapter_model")
_YAML_PATH = re.compile(r"(?:^|[ =])([^ =]+\.ya?ml)(?= |$)")
_KEY = re.compile(r"^[ ]*([A-Za-z_]+)[ ]*:[ ]*(\S.*?)[ ]*(?:#.*)?$", re.MULTILINE)
# Axolotl's base_model; LLaMA-Factory's, TRL's and Alignment Handbook's model_name_or_path; verl's
# path below model is too common a key to be taken.
_MODEL_KEYS = ("base_model", "model_name_or_path", "model_id", "hf_model_path")
_MOST_YAML = 65_536
_MOST_MAPS = 8 << 20
_MOST_DESCRIPTORS = 4096
_MOST_FILES = 1024


@dataclass(frozen=True, slots=True)
class Written:
    """What a YAML file says of the work."""

    model: str | None
    method: Kind | None


@dataclass(frozen=True, slots=True)
class Weights:
    """Weight files that a process has open or mapped: their bytes, and the name they bear.

    `config` is what the config.json beside them says, where they lie in one folder.
    """

    size_bytes: int
    model: str | None
    config: ModelConfig | None = None


def written(hostfs: HostFs, pid: int, command: str) -> Written | None:
    """What the first YAML file that the command names says. Raises PermissionError."""
    for path in _YAML_PATH.findall(command)[:4]:
        if not path.startswith("/"):
            cwd = hostfs.link(f"/proc/{pid}/cwd")
            if cwd is None:
                raise PermissionError(13, "may not be looked into", f"/proc/{pid}/cwd")
            path = posixpath.normpath(posixpath.join(cwd, path))  # noqa: PLW2901 - made absolute
        try:
            text = decode(hostfs.bytes(f"/proc/{pid}/root{path}", _MOST_YAML))
        except FileNotFoundError:
            continue
        except PermissionError:
            raise
        except OSError:
            continue
        said = {key: value.strip("\"'") for key, value in _KEY.findall(text)}
        model = next((said[key] for key in _MODEL_KEYS if said.get(key)), None)
        return Written(short_name(model) if model else None, _method(said))
    return None


def _method(said: dict[str, str]) -> Kind | None:
    """The method of fine-tuning (Axolotl: adapter; LLaMA-Factory: finetuning_type)."""
    four_bits = (
        said.get("load_in_4bit", "").lower() == "true" or said.get("quantization_bit") == "4"
    )
    match said.get("adapter", said.get("finetuning_type", "")).lower():
        case "qlora":
            return Kind.QLORA_FINETUNING
        case "lora":
            return Kind.QLORA_FINETUNING if four_bits else Kind.LORA_FINETUNING
        case "full":
            return Kind.FULL_FINETUNING
    return None


def held_weights(hostfs: HostFs, pid: int) -> Weights | None:
    """The weight files that the process holds now; None where it holds none.

    An engine lets go of them once they are on the card, so this is asked while it starts. Raises
    PermissionError where the process may not be looked into.
    """
    held = set(hostfs.opened(pid, _MOST_DESCRIPTORS))
    for line in hostfs.bytes(f"/proc/{pid}/maps", _MOST_MAPS).splitlines():
        if line.endswith((b".safetensors", b".gguf")) or b"/blobs/" in line:
            fields = line.split(None, 5)
            if len(fields) == 6:
                held.add(unescape(decode(fields[5])))
    paths = {path for path in held if _WEIGHTS.fullmatch(path)}
    paths |= _named(hostfs, pid, held)
    sizes: dict[str, int] = {}
    for path in sorted(paths)[:_MOST_FILES]:
        try:
            sizes[path] = os.stat(hostfs.path(f"/proc/{pid}/root{path}")).st_size
        except OSError:
            continue
    if not sizes:
        return None
    folders = {posixpath.dirname(path) for path in sizes}
    if len(folders) > 1:
        return Weights(sum(sizes.values()), None)
    config = read_config(hostfs, f"/proc/{pid}/root{folders.pop()}/{CONFIG}")
    return Weights(sum(sizes.values()), _name(min(sizes)), config)


def _named(hostfs: HostFs, pid: int, held: set[str]) -> set[str]:
    """The weight files among the blobs of the Hub's cache, by the links that name them."""
    blobs: dict[str, set[str]] = {}
    for path in held:
        found = _BLOB.fullmatch(path)
        if found:
            blobs.setdefault(found[1], set()).add(found[2])
    named: dict[tuple[str, str], str] = {}
    for cache, hashes in blobs.items():
        root = f"/proc/{pid}/root"
        for revision in hostfs.names(f"{root}{cache}/snapshots")[:_MOST_REVISIONS]:
            folder = f"{cache}/snapshots/{revision}"
            for name in hostfs.names(root + folder)[:_MOST_FILES]:
                if not _WEIGHTS.fullmatch(f"/{name}"):
                    continue
                link = hostfs.link(f"{root}{folder}/{name}") or ""
                blob = posixpath.basename(link)
                if blob in hashes:
                    named[cache, blob] = f"{folder}/{name}"
    return set(named.values())


def _name(path: str) -> str | None:
    """A model's name from where its weights lie: the file's own, or its folder's."""
    cached = short_name(path) if "/models--" in path else None
    if cached is not None:
        return cached
    stem = _SHARD.sub("", posixpath.basename(path).rsplit(".", 1)[0])
    if stem in _PLAIN or path.endswith(".safetensors"):
        return short_name(posixpath.dirname(path))
    return short_name(stem)


__all__ = ["WEIGHTS", "YAML", "Weights", "Written", "held_weights", "written"]
