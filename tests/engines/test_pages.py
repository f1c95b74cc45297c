"""Each engine's page, of old and new versions, as it is read."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.engines.engines import Engines
from agent.engines.loopback import FetchFailed, Page
from agent.engines.scrape import Scraper, Target

PAGES = Path(__file__).parent / "pages"
LLAMA = "meta-llama/Llama-3.1-8B-Instruct"

READ: dict[str, tuple[str, str | None, dict[str, float], dict[str, float]]] = {
    "vllm_0.6": (
        "vllm",
        LLAMA,
        {
            "kv_cache_usage_ratio": 0.03127,  # "perc" in the name, a ratio in the value
            "kv_cache_tokens": 27816 * 16,
            "requests_running": 3,
            "requests_waiting": 1,
            "preemptions_total": 2,
        },
        {"prompt_tokens_total": 81920, "generation_tokens_total": 40960},
    ),
    "vllm_0.10_two_data_parallel": (
        "vllm",
        "Qwen/Qwen3-0.6B",
        {
            "kv_cache_usage_ratio": 0.2,
            "kv_cache_tokens": 32000,
            "requests_running": 6,
            "requests_waiting": 0,
            "preemptions_total": 1,
        },
        {"prompt_tokens_total": 1500, "generation_tokens_total": 5000},
    ),
    "sglang_0.4": (
        "sglang",
        LLAMA,
        {"kv_cache_usage_ratio": 0.28, "requests_running": 162, "requests_waiting": 2826},
        {"prompt_tokens_total": 8128902, "generation_tokens_total": 7557572},
    ),
    "sglang_0.5_tp2": (
        "sglang",
        "Qwen/Qwen3-32B",
        {
            "kv_cache_usage_ratio": 0.41,
            "kv_cache_tokens": 400000,
            "requests_running": 5,
            "requests_waiting": 0,
            "preemptions_total": 3,
        },
        {},
    ),
    "tgi_2": (
        "tgi",
        None,
        {"requests_running": 12, "requests_waiting": 7},
        {"prompt_tokens_total": 9000, "generation_tokens_total": 45000},
    ),
    "tgi_0.9": (
        "tgi",
        None,
        {"requests_waiting": 0},
        {"prompt_tokens_total": 4000, "generation_tokens_total": 900},
    ),
    "triton_trtllm_2023": (
        "triton",
        None,
        {
            "kv_cache_usage_ratio": 1 / 6239,  # of its blocks: this page has no fraction
            "kv_cache_tokens": 6239 * 64,
            "requests_running": 0,
        },
        {},
    ),
    "triton_trtllm_2024": (
        "triton",
        None,
        {
            "kv_cache_usage_ratio": 0.4875,
            "kv_cache_tokens": 160 * 64,
            "requests_running": 2,
            "requests_waiting": 1,
        },
        {},
    ),
    "trtllm_serve_1": (
        "tensorrt_llm",
        "nvidia/Llama-3.1-8B-Instruct-FP8",
        {"kv_cache_usage_ratio": 0.125},
        {},
    ),
    "trtllm_serve_2026": (
        "tensorrt_llm",
        "nvidia/Llama-3.1-8B-Instruct-FP8",
        {
            "kv_cache_usage_ratio": 0.75,
            "kv_cache_tokens": 4000 * 32,
            "requests_running": 9,
            "requests_waiting": 2,
        },
        {"prompt_tokens_total": 81920, "generation_tokens_total": 20480},
    ),
    "llamacpp_2024": (
        "llama.cpp",
        None,
        {"kv_cache_usage_ratio": 0.316, "requests_running": 1, "requests_waiting": 0},
        {"prompt_tokens_total": 6886, "generation_tokens_total": 3469},
    ),
    "llamacpp_2025": (
        "llama.cpp",
        None,
        {"requests_running": 2, "requests_waiting": 5},
        {"prompt_tokens_total": 33065, "generation_tokens_total": 7801},
    ),
    "llamacpp_2026_captured": (
        "llama.cpp",
        None,
        {"requests_running": 0, "requests_waiting": 0, "longest_sequence_tokens": 56},
        {"prompt_tokens_total": 17, "generation_tokens_total": 40},
    ),
}


def test_every_page_is_told_and_has_its_source() -> None:
    assert {path.stem for path in PAGES.glob("*.txt")} == set(READ)
    sources = (PAGES / "README.md").read_text()
    for path in PAGES.iterdir():
        assert path.name == "README.md" or f"| `{path.stem}` |" in sources, path


def test_every_engine_has_an_old_and_a_new_page() -> None:
    told = [engine for engine, *_ in READ.values()]
    assert all(told.count(engine) >= 2 for engine in set(told))
    assert len(list(PAGES.glob("ollama*.json"))) == 2


@pytest.mark.parametrize("page", READ)
def test_a_page_of_each_engine_and_version(page: str) -> None:
    reading = Engines.load().read((PAGES / f"{page}.txt").read_text())
    assert reading is not None
    engine, model, levels, counters = READ[page]
    assert (reading.engine, reading.model) == (engine, model)
    assert reading.levels == pytest.approx(levels)
    assert reading.counters == counters
    if "kv_cache_usage_ratio" not in levels:
        assert "does not tell it" in reading.unavailable["kv_cache_usage_ratio"]


def test_a_percentage_is_not_taken_for_a_ratio() -> None:
    reading = Engines.load().read('vllm:gpu_cache_usage_perc{model_name="m"} 3.0\n')
    assert reading is not None
    assert "kv_cache_usage_ratio" not in reading.levels
    assert reading.unavailable["kv_cache_usage_ratio"] == "3 is no ratio of 0 to 1"


@given(st.text(max_size=300))
def test_any_text_is_read_or_is_no_engines(text: str) -> None:
    engines = Engines.load()
    assert engines.read(text) is None or "vllm:" in text or "_" in text or ":" in text
    for name in ("vllm:kv_cache_usage_perc", "sglang:token_usage"):
        reading = engines.read(f"{name} {text}\n{name} 0.5 {text}\n")
        levels = {} if reading is None else reading.levels
        assert 0.0 <= levels.get("kv_cache_usage_ratio", 0.0) <= 1.0


def scraper(pages: dict[str, str]) -> Scraper:
    def get(_address: str, _port: int, path: str) -> Page:
        return Page(200, pages[path]) if path in pages else Page(404, "")

    return Scraper(Engines.load(), get, lambda: 5.0)


def test_ollama_tells_how_much_of_the_model_is_not_on_the_gpu() -> None:
    pages = {
        "/api/ps": (PAGES / "ollama_0.11.json").read_text(),
        "/api/version": '{"version":"0.5.4"}',
    }
    scrape = scraper(pages).look(Target("127.0.0.1", 11434))
    assert (scrape.reading.engine, scrape.model, scrape.version) == (
        "ollama",
        "llama3.1:70b",
        "0.5.4",
    )
    size = json.loads(pages["/api/ps"])["models"][0]["size"]
    assert scrape.reading.levels == pytest.approx({"host_offload_ratio": 0.5, "models_bytes": size})


def test_an_old_ollama_leaves_out_that_nothing_is_on_the_gpu() -> None:
    pages = {"/api/ps": (PAGES / "ollama_0.1_cpu.json").read_text()}
    scrape = scraper(pages).look(Target("127.0.0.1", 11434))
    levels = {"host_offload_ratio": 1.0, "models_bytes": 5137025024}
    assert (scrape.model, scrape.reading.levels) == ("llama3:8b", levels)


def test_a_page_without_a_model_asks_the_list_of_models() -> None:
    models = '{"data":[{"id":"sql-lora","parent":"base"},{"id":"Qwen2.5-7B-Instruct"}]}'
    pages = {"/metrics": (PAGES / "llamacpp_2025.txt").read_text(), "/v1/models": models}
    scrape = scraper(pages).look(Target("127.0.0.1", 8080))
    assert scrape.model == "Qwen2.5-7B-Instruct"
    assert "weights_bytes" not in scrape.reading.levels
    # As llama.cpp's server answers (its README).
    meta = '{"vocab_type":2,"n_vocab":128256,"n_params":8030261312,"size":4912898304}'
    pages["/v1/models"] = f'{{"data":[{{"id":"llama.gguf","meta":{meta}}}]}}'
    scrape = scraper(pages).look(Target("127.0.0.1", 8080))
    assert scrape.reading.levels["weights_bytes"] == 4912898304


def test_what_is_no_engine_says_what_was_found() -> None:
    with pytest.raises(FetchFailed, match=r"/metrics: no known engine's page.*/api/ps: HTTP 404"):
        scraper({"/metrics": "node_load1 0.5\n"}).look(Target("127.0.0.1", 8000))
