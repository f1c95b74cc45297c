"""A language of the report: its sentences, numbers, units and dates.

English templates are the keys. Translations are gettext catalogues, `locales/*.po`; what a
catalogue lacks stays English.
"""

from __future__ import annotations

import gettext
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from importlib import resources
from io import BytesIO

from babel import Locale
from babel.dates import format_datetime
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po
from babel.numbers import format_decimal, get_decimal_symbol

from advisor.message import Amount, Message, Value, say

LANGUAGES = {"en": "en_GB", "es": "es_ES"}
"""The languages that a report can be had in, with the locale of their numbers and dates."""

NO_BREAK = "\u00a0"
_COUNTED = {"GPUs": say("GPUs"), "cores": say("cores"), "sockets": say("sockets")}


@dataclass(frozen=True, slots=True)
class Language:
    """One language. Times are of `zone`, and say so."""

    code: str
    locale: Locale
    translations: gettext.NullTranslations
    zone: tzinfo = UTC

    @classmethod
    def load(cls, code: str, zone: tzinfo = UTC) -> Language:
        """The language of a code in LANGUAGES. Raises KeyError for another."""
        locale = Locale.parse(LANGUAGES[code])
        return cls(code, locale, _translations(code), zone)

    def text(self, message: Message | str, **values: Value) -> str:
        """A message, or a template and its values, as a sentence of this language."""
        if isinstance(message, str):
            message = Message(message, values)
        # gettext answers the empty key with the catalogue's header.
        template = self.translations.gettext(message.template) if message.template else ""
        return self._filled(template, message)

    def sentence(self, message: Message | str) -> str:
        """A message as a whole sentence: begun with a capital and ended with a stop."""
        text = self.text(message).strip()
        return text[:1].upper() + text[1:] + ("" if text.endswith((".", "!", "?")) else ".")

    def plural(self, one: str, many: str, number: int, **values: Value) -> str:
        """The form of a template that goes with a number, which both may show as `{n}`."""
        template = self.translations.ngettext(one, many, number)
        return self._filled(template, Message(one, {"n": number, **values}))

    def _filled(self, template: str, message: Message) -> str:
        if not message.values:
            return template.replace("{{", "{").replace("}}", "}")
        return template.format(**{n: self.value(v) for n, v in message.values.items()})

    def value(self, value: Value) -> str:
        """A value of a message: a sentence, an amount or a number; text as it is."""
        match value:
            case Message():
                return self.text(value)
            case Amount():
                return self.amount(value)
            case str():
                return value
        return self.number(value)

    def amount(self, amount: Amount) -> str:
        """A number with its unit, kept on one line."""
        if amount.unit == "count":
            return self.number(amount.value)
        if amount.unit in _COUNTED:
            return self.number(amount.value) + NO_BREAK + self.text(_COUNTED[amount.unit])
        if amount.unit == "hours":
            return self.hours(amount.value)
        text = amount.text(get_decimal_symbol(self.locale))
        return text.replace(" ", NO_BREAK)

    def number(self, value: float) -> str:
        """Grouped in thousands, with as many decimals as three digits leave."""
        pattern = "#,##0" if abs(value) >= 100 else "#,##0.#" if abs(value) >= 10 else "#,##0.##"
        return format_decimal(value, pattern, locale=self.locale)

    def share(self, ratio: float) -> str:
        """A ratio as whole per cent; what is above nothing does not become 0 %."""
        if 0 < ratio < 0.005:
            return f"<{NO_BREAK}1{NO_BREAK}%"
        if 0.995 <= ratio < 1:
            return f">{NO_BREAK}99{NO_BREAK}%"
        return format_decimal(ratio * 100, "#,##0", locale=self.locale) + NO_BREAK + "%"

    def hours(self, hours: float) -> str:
        """Hours, to a tenth where they are few."""
        if 0 < hours < 0.05:
            return f"<{NO_BREAK}" + format_decimal(0.1, locale=self.locale) + f"{NO_BREAK}h"
        pattern = "#,##0.#" if abs(hours) < 10 else "#,##0"
        return format_decimal(hours, pattern, locale=self.locale) + f"{NO_BREAK}h"

    def minutes(self, seconds: float) -> str:
        """A length of minutes, or of whole hours."""
        if seconds % 3600 == 0:
            return self.hours(seconds / 3600)
        return self.number(seconds / 60) + f"{NO_BREAK}min"

    def duration(self, seconds: float) -> str:
        """A length of time for people: seconds, minutes, hours or days."""
        if seconds <= 0:
            return self.text(say("none"))
        for length, unit in ((86_400, "d"), (3600, "h"), (60, "min")):
            if seconds >= length:
                return self.number(seconds / length) + NO_BREAK + unit
        return self.number(seconds) + f"{NO_BREAK}s"

    def moment(self, seconds: float) -> str:
        """A day and its hour, with the zone's name."""
        name = datetime.fromtimestamp(seconds, self.zone).tzname() or "UTC"
        return self._date(seconds, "EEE d MMM y, HH:mm") + NO_BREAK + name

    def day(self, seconds: float) -> str:
        """A day of the week and of the month."""
        return self._date(seconds, "EEE d")

    def date(self, seconds: float) -> str:
        """A day and its month."""
        return self._date(seconds, "d MMM")

    def hour(self, seconds: float) -> str:
        """An hour of the day."""
        return self._date(seconds, "HH:mm")

    def _date(self, seconds: float, pattern: str) -> str:
        moment = datetime.fromtimestamp(seconds, self.zone)
        # Written as it is here: Babel would put a time with a zone back into UTC.
        return format_datetime(moment.replace(tzinfo=None), pattern, locale=self.locale)


def _translations(code: str) -> gettext.NullTranslations:
    """The report's catalogue, and behind it those of other parts (`es.page.po`)."""
    first = gettext.NullTranslations()
    if code == "en":
        return first
    folder = resources.files("advisor.report").joinpath("locales")
    for path in sorted(folder.iterdir(), key=lambda path: path.name):
        if path.name.startswith(f"{code}.") and path.name.endswith(".po"):
            compiled = BytesIO()
            write_mo(compiled, read_po(BytesIO(path.read_bytes()), locale=code))
            compiled.seek(0)
            first.add_fallback(gettext.GNUTranslations(compiled))
    return first
