"""llama.cpp's own server on the CPU, with a tiny model of random weights: a real engine's page.

`python llamacpp_server.py -m MODEL.gguf --port N` writes the model and serves it until killed.
"""

from __future__ import annotations

import argparse
import threading

import gguf
import numpy
import xllamacpp

_WIDTH, _HEADS, _FEED, _CONTEXT = 64, 4, 128, 512
_PIECES = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
"""The least vocabulary that any text can be written in: its bytes."""


def write_model(path: str) -> None:
    """A llama of one block (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md)."""
    random = numpy.random.default_rng(7)

    def weights(*shape: int) -> numpy.ndarray[tuple[int, ...], numpy.dtype[numpy.float32]]:
        return (random.standard_normal(shape) * 0.02).astype(numpy.float32)

    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("Random 0.1M")
    writer.add_context_length(_CONTEXT)
    writer.add_embedding_length(_WIDTH)
    writer.add_block_count(1)
    writer.add_feed_forward_length(_FEED)
    writer.add_head_count(_HEADS)
    writer.add_head_count_kv(_HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(_WIDTH // _HEADS)
    writer.add_tokenizer_model("llama")
    writer.add_token_list(_PIECES)
    writer.add_token_scores([0.0] * len(_PIECES))
    kinds = [gguf.TokenType.UNKNOWN, *[gguf.TokenType.CONTROL] * 2, *[gguf.TokenType.BYTE] * 256]
    writer.add_token_types(kinds)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    for name, shape in (
        ("token_embd", (len(_PIECES), _WIDTH)),
        ("output", (len(_PIECES), _WIDTH)),
        *((f"blk.0.attn_{part}", (_WIDTH, _WIDTH)) for part in ("q", "k", "v", "output")),
        ("blk.0.ffn_gate", (_FEED, _WIDTH)),
        ("blk.0.ffn_up", (_FEED, _WIDTH)),
        ("blk.0.ffn_down", (_WIDTH, _FEED)),
    ):
        writer.add_tensor(f"{name}.weight", weights(*shape))
    for name in ("output_norm", "blk.0.attn_norm", "blk.0.ffn_norm"):
        writer.add_tensor(f"{name}.weight", numpy.ones(_WIDTH, numpy.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("-m", "--model", required=True)
    parser.add_argument("--port", type=int, required=True)
    options = parser.parse_args()
    write_model(options.model)
    params = xllamacpp.CommonParams()
    params.model.path = options.model
    params.hostnames = ["127.0.0.1"]
    params.port = options.port
    params.endpoint_metrics = True
    params.n_ctx = _CONTEXT
    params.n_parallel = 2
    params.warmup = False
    params.cpuparams.n_threads = 1
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main()
