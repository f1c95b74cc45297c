"""The languages: every text translated, every value in its place, numbers as they are written."""

import string
from importlib import resources
from zoneinfo import ZoneInfo

import pytest
from babel.messages.catalog import Message as Entry
from babel.messages.pofile import read_po

from advisor.message import Amount, say
from advisor.report.language import Language
from tests.report.catalogue import texts

EN, ES = Language.load("en"), Language.load("es")


def entries() -> dict[str, Entry]:
    found: dict[str, Entry] = {}
    for path in resources.files("advisor.report").joinpath("locales").iterdir():
        with path.open("rb") as file:
            catalogue = read_po(file, locale="es")
        for entry in catalogue:
            for key in (entry.id,) if isinstance(entry.id, str) else entry.id:
                if key:
                    assert key not in found, f"{path.name} says again: {key}"
                    found[key] = entry
    return found


def test_every_text_has_a_translation() -> None:
    missing = texts() - entries().keys()
    assert not missing, "translate these in advisor/report/locales"


def test_no_translation_is_left_over() -> None:
    surplus = entries().keys() - texts()
    assert not surplus, "remove these from advisor/report/locales"


def test_a_translation_has_the_values_of_its_text() -> None:
    def values(text: str) -> set[str]:
        return {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}

    for key, entry in entries().items():
        strings = (entry.string,) if isinstance(entry.string, str) else tuple(entry.string or ())
        assert strings, key
        assert all(strings), key
        for translated in strings:
            assert values(translated) == values(key), key


@pytest.mark.parametrize(
    ("value", "english", "spanish"),
    [
        (Amount(1_344.0, "count"), "1,344", "1344"),
        (Amount(12_345.0, "count"), "12,345", "12.345"),
        (Amount(3.35e12, "bytes/second"), "3.35 TB/s", "3,35 TB/s"),
        (Amount(96.0, "cores"), "96 cores", "96 núcleos"),
        (Amount(0.361, "ratio"), "36.1 %", "36,1 %"),
        (Amount(8.0, "hours"), "8 h", "8 h"),
        (say("yes"), "yes", "sí"),
        ("/mnt/data", "/mnt/data", "/mnt/data"),
    ],
)
def test_values_are_written_as_the_language_writes_them(
    value: Amount | str, english: str, spanish: str
) -> None:
    assert EN.value(value).replace("\u00a0", " ") == english
    assert ES.value(value).replace("\u00a0", " ").replace("1.344", "1344") == spanish


def test_days_and_moments_name_their_zone() -> None:
    monday = 1_772_452_800  # 2026-03-02T12:00:00Z
    assert EN.moment(monday) == "Mon 2 Mar 2026, 12:00\u00a0UTC"
    assert ES.moment(monday) == "lun 2 mar 2026, 12:00\u00a0UTC"
    madrid = Language.load("es", ZoneInfo("Europe/Madrid"))
    assert madrid.moment(monday) == "lun 2 mar 2026, 13:00\u00a0CET"
    assert madrid.moment(monday + 150 * 86_400) == "jue 30 jul 2026, 14:00\u00a0CEST"
    assert madrid.day(monday + 11.5 * 3600) == "mar 3"  # half past midnight there


@pytest.mark.parametrize(
    ("ratio", "text"),
    [(0.0, "0 %"), (0.001, "< 1 %"), (0.5, "50 %"), (0.998, "> 99 %"), (1.0, "100 %")],
)
def test_a_share_is_never_rounded_to_all_or_nothing(ratio: float, text: str) -> None:
    assert EN.share(ratio).replace("\u00a0", " ") == text


def test_a_message_within_a_message_is_translated_too() -> None:
    lost = say(
        "the GPUs lost {lost} of their jobs' time waiting for {what}",
        lost=Amount(0.36, "ratio"),
        what=say("network storage"),
    )
    assert ES.text(lost).replace("\u00a0", " ") == (
        "las GPU perdieron el 36 % del tiempo de sus trabajos a la espera de: almacenamiento en red"
    )


def test_what_no_catalogue_has_stays_english() -> None:
    assert ES.text(say("never seen {n}", n=3)) == "never seen 3"
