"""What the code must never do with what came from outside, and what it may depend on."""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = [p for folder in ("telemetry", "agent", "advisor") for p in (ROOT / folder).rglob("*.py")]
FORBIDDEN_CALLS = {"eval", "exec", "compile", "__import__", "system", "popen", "getoutput"}
FORBIDDEN_MODULES = {"pickle", "cPickle", "shelve", "marshal", "dill", "joblib", "yaml"}


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT)))
def test_no_shell_no_pickle_no_code_from_data(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "id", getattr(node.func, "attr", ""))
            compiled_pattern = isinstance(node.func, ast.Attribute) and name == "compile"
            assert name not in FORBIDDEN_CALLS or compiled_pattern, f"{path}:{node.lineno}"
            for keyword in node.keywords:
                shell = keyword.arg == "shell" and getattr(keyword.value, "value", True)
                assert not shell, f"{path}:{node.lineno}"
        elif isinstance(node, ast.Import):
            imported = {alias.name.split(".")[0] for alias in node.names}
            assert not imported & FORBIDDEN_MODULES, f"{path}:{node.lineno}"
        elif isinstance(node, ast.ImportFrom):
            assert (node.module or "").split(".")[0] not in FORBIDDEN_MODULES, path


def test_every_dependency_says_why_and_is_pinned() -> None:
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    project = tomllib.loads(text)["project"]
    extras = project["optional-dependencies"]
    pinned = {
        line.split("==")[0].lower().replace("_", "-")
        for line in (ROOT / "constraints.txt").read_text().splitlines()
        if "==" in line
    }
    for wanted in (*project["dependencies"], *extras["advisor"]):
        line = next(found for found in text.splitlines() if f'"{wanted}"' in found)
        assert "#" in line, f"{wanted}: no reason is given"
        name = re.split(r"[<>=!~\[]", wanted)[0].lower()
        assert name in pinned, f"{wanted}: not in constraints.txt"


def test_a_stolen_report_shows_command_lines_without_their_secrets(tmp_path: Path) -> None:
    secret = "hf_AbCdEfGhIjKlMnOpQrStUvWxYz012345"
    command = f"python /home/ana/finetune.py --hub_token {secret} --wandb-api-key={secret}"
    rows = ["time,host,gpu_uuid,gpu_model,utilization_ratio,memory_used_bytes,processes"]
    rows += [
        f"{1_790_000_100 + 300 * n},gpu01,GPU-1,NVIDIA A100-SXM4-80GB,0.5,40000000000,{command}"
        for n in range(12 * 30)
    ]
    log, store = tmp_path / "log.csv", tmp_path / "s.db"
    log.write_text("\n".join(rows) + "\n")
    run = [sys.executable, "-m", "advisor.cli"]
    subprocess.run(
        [*run, "import", log, "--store", store], cwd=ROOT, check=True, capture_output=True
    )
    made = tmp_path / "report"
    subprocess.run(
        [*run, "report", "--store", store, "-o", made, "--format", "html,md,json"],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    pages = [path.read_text("utf-8") for path in made.iterdir()]
    assert len(pages) >= 3
    for page in pages:
        assert secret not in page
    assert secret.encode() not in store.read_bytes()
