"""The words that the page's own script says, in the language of the visitor."""

from __future__ import annotations

from advisor.message import Message, say
from advisor.report.language import Language
from advisor.report.words import CAUSES, MEANINGS, OWNER_KINDS, STATES

_WORDS: dict[str, Message] = {
    "now": say("Now"),
    "gpu": say("GPU"),
    "state": say("State"),
    "activity": say("Activity"),
    "memory": say("Memory"),
    "power": say("Power"),
    "pcie": say("PCIe"),
    "pcie_in": say("PCIe, into the GPUs"),
    "pcie_out": say("PCIe, out of the GPUs"),
    "whose": say("Whose work"),
    "cause": say("Cause"),
    "age": say("{age} old"),
    "data_age": say("Data {age} old"),
    "no_data": say("no data"),
    "stale": say("No new data for {age}. Is the agent running?"),
    "late_one": say("{host} has sent nothing new for {age}."),
    "late_many": say("{count} servers have sent nothing new for a while: {hosts}."),
    "offline": say("The page has lost its server; it keeps trying. What you see is {age} old."),
    "trouble": say("The data cannot be read: {why}"),
    "nothing": say("Nothing was recorded here yet."),
    "no_match": say("No server fits what you look for."),
    "no_gpu": say("This server has no GPU that was seen."),
    "since": say("for {time}"),
    "used_of": say("{used} of {total}"),
    "needed": say("needs {needed}"),
    "in": say("in {rate}"),
    "out": say("out {rate}"),
    "sm": say("SM {share}"),
    "tensor": say("tensor {share}"),
    "dram": say("DRAM {share}"),
    "of_limit": say("{power} of {limit}"),
    "unread": say("not read"),
    "lost": say("gives no reading"),
    "nobody": say("nobody"),
    "error": say("The GPU answers an error: {error}"),
    "cpu": say("CPU busy"),
    "iowait": say("CPU waiting for I/O"),
    "ram": say("RAM in use"),
    "io_pressure": say("I/O pressure"),
    "memory_pressure": say("Memory pressure"),
    "utilization": say("GPU activity"),
    "gpu_memory": say("GPU memory in use"),
    "gpu_power": say("GPU power"),
    "host": say("The host"),
    "states": say("States"),
    "earlier": say("Earlier"),
    "later": say("Later"),
    "closer": say("Closer"),
    "wider": say("Wider"),
    "live": say("Follow now"),
    "shown": say("Shown: {since} to {until}"),
    "chart_of": say("{what}: {rows}"),
    "chart_row": say("{name} {low} to {high}, mean {mean}"),
    "chart_none": say("nothing was read"),
    "course_none": say("Nothing was recorded over this time."),
    "loading": say("Loading"),
    "no_alerts": say("No alert is raised."),
    "over": say("over"),
    "snoozed": say("snoozed until {time}"),
    "critical": say("critical"),
    "warning": say("warning"),
    "info": say("for information"),
    "findings_none": say("There are no findings yet."),
    "findings_fleet": say("Findings of a fleet are told by the report."),
    "findings_wait": say("Judging what was seen: this can take a minute."),
    "findings_made": say("Judged {time}"),
    "confidence": say("confidence {share}"),
    "reports_none": say("There are no reports yet."),
    "failed": say("This could not be read: {why}"),
    "standby": say("declared standby"),
    "loading_model": say("loading"),
    "model": say("model {name}"),
    "unknown_owner": say("owner not known"),
    "unit_second": say("s"),
    "unit_minute": say("min"),
    "unit_hour": say("h"),
    "unit_day": say("d"),
    "servers_count": say("{n} servers, {gpus} GPUs"),
    "look_cost": say("A look at the data takes {ms} ms of one core."),
}


def texts_for(language: Language) -> dict[str, object]:
    """Every word of the script in a language; `{name}` is left for the script to fill."""
    return {
        "words": {name: _open(language, message) for name, message in _WORDS.items()},
        "states": {state.value: language.text(message) for state, message in STATES.items()},
        "meanings": {state.value: language.text(message) for state, message in MEANINGS.items()},
        "causes": {cause.value: language.text(message) for cause, message in CAUSES.items()},
        "owner_kinds": {kind: language.text(message) for kind, message in OWNER_KINDS.items()},
    }


def _open(language: Language, message: Message) -> str:
    return language.translations.gettext(message.template)
