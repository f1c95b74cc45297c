"""Signatures against the lines that public documentation shows."""

from __future__ import annotations

import pytest

from telemetry.workload import Kind, Signatures

SIGNATURES = Signatures.load()
LINES = [(s.kind, s.tool, line) for s in SIGNATURES.signatures for line in s.tests]
METHOD_LINES = [(m.kind, line) for m in SIGNATURES.methods for line in m.tests]


@pytest.mark.parametrize(("kind", "tool", "line"), LINES)
def test_a_documented_line_is_told_by_its_own_signature(kind: Kind, tool: str, line: str) -> None:
    match = SIGNATURES.match(line)
    assert match is not None
    assert (match.kind, match.tool) == (kind, tool)


@pytest.mark.parametrize(("kind", "line"), METHOD_LINES)
def test_an_option_tells_the_method(kind: Kind, line: str) -> None:
    match = SIGNATURES.match(line)
    assert match is not None
    assert match.kind is kind


def test_every_signature_has_a_public_source_and_a_line() -> None:
    for signature in SIGNATURES.signatures:
        assert signature.source.startswith("https://")
        assert signature.tests
    for method in SIGNATURES.methods:
        assert method.source.startswith("https://")
        assert method.tests
