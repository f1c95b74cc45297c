// Words, numbers and units in the visitor's language.
const texts = JSON.parse(document.getElementById("texts").textContent);
export const language = texts.language;
const locale = language === "es" ? "es-ES" : "en-GB";

export function say(name, values = {}) {
  const template = texts.words[name] ?? name;
  return template.replace(/\{(\w+)\}/g, (whole, key) => values[key] ?? whole);
}
export const states = Object.keys(texts.states);
export const stateText = state => texts.states[state] ?? state;
export const meaning = state => texts.meanings[state] ?? "";
export const causeText = cause => texts.causes[cause] ?? cause;
export const ownerKind = kind => texts.owner_kinds[kind] ?? "";

const formats = new Map();
function format(digits) {
  if (!formats.has(digits))
    formats.set(digits, new Intl.NumberFormat(locale, { maximumFractionDigits: digits, useGrouping: false }));
  return formats.get(digits);
}
export function number(value) {
  const size = Math.abs(value);
  return format(size >= 100 ? 0 : size >= 10 ? 1 : 2).format(value);
}
const PREFIXES = [[1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]];
export function amount(value, unit) {
  if (value == null) return say("unread");
  if (unit === "ratio") return `${format(0).format(value * 100)}\u00a0%`;
  if (unit === "celsius") return `${format(0).format(value)}\u00a0°C`;
  const short = { bytes: "B", "bytes/second": "B/s", watts: "W" }[unit] ?? unit;
  if (unit === "watts") return `${format(0).format(value)}\u00a0W`;
  for (const [factor, letter] of PREFIXES)
    if (Math.abs(value) >= factor * 0.9995) return `${number(value / factor)}\u00a0${letter}${short}`;
  return `${number(value)}\u00a0${short}`;
}
export function span(seconds) {
  const s = Math.max(0, Math.round(seconds));
  if (s < 100) return `${s}\u00a0${say("unit_second")}`;
  if (s < 5400 && s !== 3600) return `${Math.round(s / 60)}\u00a0${say("unit_minute")}`;
  if (s < 172800) return `${Math.round(s / 3600)}\u00a0${say("unit_hour")}`;
  return `${Math.round(s / 86400)}\u00a0${say("unit_day")}`;
}
const moments = new Intl.DateTimeFormat(locale, { weekday: "short", day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });
export const moment = seconds => moments.format(seconds * 1000);
const clocks = new Intl.DateTimeFormat(locale, { hour: "2-digit", minute: "2-digit", second: "2-digit" });
export const clock = seconds => clocks.format(seconds * 1000);
const days = new Intl.DateTimeFormat(locale, { weekday: "short", day: "numeric" });
const hours = new Intl.DateTimeFormat(locale, { hour: "2-digit", minute: "2-digit" });
export const tick = (seconds, step) =>
  step >= 86400 || (step >= 3600 && new Date(seconds * 1000).getHours() === 0) ? days.format(seconds * 1000)
    : step < 60 ? clock(seconds) : hours.format(seconds * 1000);
