"""The texts that people may see, read from the sources: what a catalogue must hold."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from jinja2 import Environment, nodes

import advisor
from advisor.profiles import Profiles

_ROOT = Path(advisor.__file__).parent
_SAYING = {"say", "Message"}


def texts() -> set[str]:
    """English templates of messages, statistics of evidence, templates' texts, documented rules."""
    found = {rule.says for rule in Profiles.load().rules}
    for path in sorted(_ROOT.rglob("*.py")):
        if path.parent != _ROOT / "planner" and path.parent != _ROOT / "commands":
            found |= set(_of_python(path))
    for path in sorted([*(_ROOT / "report").rglob("*"), *(_ROOT / "web").glob("*.html")]):
        if path.suffix in (".html", ".md"):
            found |= set(_of_template(path))
    return found


def _of_python(path: Path) -> Iterator[str]:
    tree = ast.parse(path.read_text("utf-8"), str(path))
    constants: dict[str, list[ast.expr]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    constants.setdefault(target.id, []).append(node.value)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        if isinstance(node.func, ast.Name):
            name = node.func.id
        if name in _SAYING or (name in ("text", "t") and path.is_relative_to(_ROOT / "report")):
            yield from _constants(node.args[:1], constants)
        elif name == "plural":
            yield from _constants(node.args[:2], constants)
        elif name == "JobDemand":
            sources = [keyword.value for keyword in node.keywords if keyword.arg == "source"]
            yield from _constants([*node.args[7:8], *sources], constants)
        elif name == "Evidence":
            yield from _constants(node.args[1:2], constants)


def _constants(found: list[ast.expr], names: dict[str, list[ast.expr]]) -> Iterator[str]:
    """The strings that an argument may be: itself, either side of an if, or a name's values."""
    for node in found:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.IfExp):
            yield from _constants([node.body, node.orelse], names)
        elif isinstance(node, ast.Name):
            yield from _constants(names.get(node.id, []), {})


def _of_template(path: Path) -> Iterator[str]:
    tree = Environment().parse(path.read_text("utf-8"))
    for call in tree.find_all(nodes.Call):
        if isinstance(call.node, nodes.Name) and call.node.name in ("t", "plural"):
            for argument in call.args[: 1 if call.node.name == "t" else 2]:
                yield from (c.value for c in argument.find_all(nodes.Const))
                if isinstance(argument, nodes.Const):
                    yield argument.value
