"""Metrics of inference engines, read from the engine's own endpoint."""

from __future__ import annotations

from telemetry.metrics.declaration import (
    COUNTER,
    GAUGE,
    LAST,
    MAX,
    MEAN,
    MEAN_MAX,
    Family,
    Metric,
    Source,
)

ENGINE = Family(
    "engine",
    "One inference engine, by the port that it listens on (`other-N` where ports are random).",
    tags=("port",),
    texts=("engine", "engine_version", "model", "gpu_uuids"),
    metrics=(
        Metric("kv_cache_usage_ratio", "ratio", GAUGE, "KV cache in use", MEAN_MAX),
        Metric("kv_cache_bytes", "bytes", GAUGE, "size of the KV cache", LAST),
        Metric("kv_cache_tokens", "tokens", GAUGE, "tokens that the KV cache holds", LAST),
        Metric(
            "longest_sequence_tokens", "tokens", GAUGE, "longest sequence since it started", MAX
        ),
        Metric("weights_bytes", "bytes", GAUGE, "weights of its model, as it tells them", LAST),
        Metric(
            "models_bytes",
            "bytes",
            GAUGE,
            "what its models take with their caches, on GPUs and in host memory, as it tells it",
            MAX,
        ),
        Metric(
            "host_offload_ratio", "ratio", GAUGE, "share of the models that is in host memory", MAX
        ),
        Metric("requests_running", "requests", GAUGE, "requests being served", MEAN_MAX),
        Metric("requests_waiting", "requests", GAUGE, "requests that wait", MEAN_MAX),
        Metric(
            "saturated_ratio",
            "ratio",
            GAUGE,
            "share of seconds with 95 % of the KV cache in use while requests wait",
            MEAN,
        ),
        Metric("preemptions_total", "requests", COUNTER, "requests pushed out of memory", LAST),
        Metric("prompt_tokens_per_second", "tokens/second", GAUGE, "tokens read", MEAN),
        Metric("generation_tokens_per_second", "tokens/second", GAUGE, "tokens made", MEAN),
    ),
    sources=(
        Source(("host_offload_ratio",), "GET /api/ps: size_vram against size", "Ollama"),
        Source(("models_bytes",), "GET /api/ps: size, every 15 s", "Ollama"),
        Source(("weights_bytes",), "GET /v1/models: meta.size, every 15 s", "llama.cpp"),
        Source(
            ("longest_sequence_tokens",),
            "GET /metrics: llamacpp:n_tokens_max, every 15 s",
            "llama.cpp (builds of 2026; not of 2025)",
        ),
        Source(
            ("saturated_ratio",),
            "counted from the cache's use and waiting requests",
            "engines that tell both",
        ),
        Source(("kv_cache_bytes",), "simulated and imported data; no engine tells it", "-"),
        Source(
            ("kv_cache_tokens",),
            "GET /metrics, every 15 s (names: agent/engines/engines.toml)",
            "vLLM, SGLang, Triton with TensorRT-LLM",
        ),
        Source(
            ("kv_cache_usage_ratio",),
            "GET /metrics, every 15 s (names: agent/engines/engines.toml)",
            "vLLM, SGLang, TensorRT-LLM, llama.cpp until 2025; not TGI, not Ollama",
        ),
        Source(("preemptions_total",), "GET /metrics, every 15 s", "vLLM, SGLang"),
        Source(
            ("*",),
            "GET /metrics, every 15 s (names: agent/engines/engines.toml)",
            "vLLM, SGLang, TGI, TensorRT-LLM, llama.cpp",
        ),
    ),
)
