"""Writes a report: the files of each format and language, all or none of each."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from datetime import UTC, tzinfo
from pathlib import Path

from advisor.errors import AdvisorError
from advisor.report import as_json, html, markdown
from advisor.report.language import Language
from advisor.report.report import Report

FORMATS = ("html", "json", "mail", "md")


def rendered(
    report: Report, formats: Sequence[str], languages: Sequence[str], zone: tzinfo = UTC
) -> dict[str, str | bytes]:
    """The files by name. With several languages the name tells each: `report.es.html`."""
    files: dict[str, str | bytes] = {}
    for code in languages:
        language = Language.load(code, zone)
        name = "report" if len(languages) == 1 else f"report.{code}"
        if "html" in formats:
            files.update(html.pages(report, language, name))
        if "md" in formats:
            files[f"{name}.md"] = markdown.text(report, language)
        if "mail" in formats:
            from advisor.report import mail  # and matplotlib with it

            files.update(mail.files(report, language, name.replace("report", "mail")))
    if "json" in formats:
        files["report.json"] = as_json_text(report)
    return files


def as_json_text(report: Report) -> str:
    """The JSON document as text."""
    return json.dumps(as_json.document(report), indent=2, ensure_ascii=False) + "\n"


def write(files: Mapping[str, str | bytes], folder: Path) -> list[Path]:
    """Writes the files into a folder, made if need be; returns their paths.

    Each file replaces an older one at once. Raises AdvisorError naming what cannot be written.
    """
    written = []
    path = folder
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            path = folder / name
            part = folder / f".{name}.part"
            part.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
            os.replace(part, path)
            written.append(path)
    except OSError as error:
        raise AdvisorError(
            f"{path}: cannot be written ({error.strerror}); name another folder with -o"
        ) from None
    return written
