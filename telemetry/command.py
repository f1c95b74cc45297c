"""What a command line runs: the program behind interpreters and launchers, and its options."""

from __future__ import annotations

import re
from dataclasses import dataclass

MAX_LENGTH = 8192
_MAX_WORDS = 8

_PYTHON = re.compile(r"(?:python|pypy)[\d.]*")
# Programs that run another one and say nothing of the work themselves.
_WRAPPERS = re.compile(
    r"(?:ba|da|z)?sh|catchsegv|chrt|conda|doas|dumb-init|env|exec|gosu|ionice|nice|nohup|nsenter"
    r"|numactl|pdm|pipenv|pixi|poetry|prlimit|setsid|stdbuf|su-exec|sudo|taskset|time|timeout"
    r"|tini|unbuffer|uvx?|xvfb-run"
)
_LAUNCHERS = re.compile(
    r"accelerate|colossalai|composer|deepspeed|horovodrun|ipython3?|mpiexec|mpirun|orterun|srun"
    r"|torchrun"
)
_LAUNCHER_MODULES = re.compile(
    r"accelerate\.commands\.launch|deepspeed\.launcher\.(?:launch|runner)"
    r"|torch\.distributed\.(?:launch|run)"
)
_PYTHON_OPTIONS_WITH_VALUE = frozenset({"-X", "-W"})


@dataclass(frozen=True, slots=True)
class Command:
    """A command line taken apart.

    `path` is the program (script, module or binary) as written; `program` its last component
    followed by its words up to the first option, one blank between; `options` are `--name value`,
    `--name=value` and `name=value` in order, names in lower case with underscores.
    """

    path: str
    program: str
    words: tuple[str, ...]
    options: tuple[tuple[str, str | None], ...]
    text: str
    launched: bool = False

    def option(self, *names: str) -> str | None:
        """The last non-empty value among options of these names."""
        found = None
        for name, value in self.options:
            if value and name in names:
                found = value
        return found

    def flag(self, name: str) -> bool:
        """Whether an option was given and not switched off."""
        return any(n == name and not _is_off(v) for n, v in self.options)


def parse(command: str) -> Command | None:
    """Takes a command line (blanks or NULs between arguments) apart; None if it runs nothing.

    At most 8,192 characters are looked at. A launcher without the program that it launches, an
    interpreter that reads its program from elsewhere, and an empty line run nothing known.
    """
    tokens = command[:MAX_LENGTH].replace("\0", " ").split()
    start, launched = _program_start(tokens)
    if start is None:
        return None
    path, rest = tokens[start], tokens[start + 1 :]
    words: list[str] = []
    for token in rest:
        if token.startswith("-") or len(words) == _MAX_WORDS:
            break
        words.append(token)
    name = path.replace("\\", "/").rstrip("/").rsplit("/", 1)[-1]
    return Command(
        path=path,
        program=" ".join((name, *words)),
        words=tuple(words),
        options=tuple(_options(rest)),
        text=" ".join((path, *rest)),
        launched=launched,
    )


def _program_start(tokens: list[str]) -> tuple[int | None, bool]:
    """The index of what is run, and whether a launcher starts it."""
    launched = False
    i = 0
    while i < len(tokens):
        name = tokens[i].rsplit("/", 1)[-1]
        if _PYTHON.fullmatch(name):
            found = _python_target(tokens, i + 1)
            if found is None:
                return None, launched
            i = found
            if _LAUNCHER_MODULES.fullmatch(tokens[i]) or _is_launcher(tokens[i]):
                launched = True
                found = _launched(tokens, i + 1)
                if found is None:
                    return None, launched
                i = found
                continue
            if tokens[i - 1] == "-m" or tokens[i].endswith(".py"):
                return i, launched
            continue
        if _is_launcher(name):
            launched = True
            found = _launched(tokens, i + 1)
        elif _WRAPPERS.fullmatch(name):
            found = _wrapped(tokens, i + 1)
        else:
            return i, launched
        if found is None:
            return None, launched
        i = found
        if tokens[i - 1] in {"-m", "--module"} or tokens[i].endswith(".py"):
            return i, launched
    return None, launched


def _python_target(tokens: list[str], i: int) -> int | None:
    while i < len(tokens) and tokens[i].startswith("-"):
        if tokens[i] == "-m":
            return i + 1 if i + 1 < len(tokens) else None
        if tokens[i] in {"-c", "-"}:
            return None
        i += 2 if tokens[i] in _PYTHON_OPTIONS_WITH_VALUE else 1
    return i if i < len(tokens) else None


def _launched(tokens: list[str], i: int) -> int | None:
    """What a launcher runs: the first script, module or interpreter among what follows."""
    for j in range(i, len(tokens)):
        token = tokens[j]
        if token in {"-m", "--module"} and j + 1 < len(tokens) and not _is_number(tokens[j + 1]):
            return j + 1
        name = token.rsplit("/", 1)[-1]
        if token.endswith(".py") or _PYTHON.fullmatch(name):
            return j
        if j > i and _is_launcher(name):
            return j
    return None


def _wrapped(tokens: list[str], i: int) -> int | None:
    """What a wrapper runs: the first word that is no option, assignment, number or `run`."""
    for j in range(i, len(tokens)):
        token = tokens[j]
        if token.startswith("-") or _is_number(token.rstrip("smhd")) or token == "run":
            continue
        if "=" in token.split("/", 1)[0]:
            continue
        return j
    return None


def _is_launcher(token: str) -> bool:
    return _LAUNCHERS.fullmatch(token.rsplit("/", 1)[-1]) is not None


def _is_number(token: str) -> bool:
    return token.replace(".", "", 1).replace(",", "").replace("-", "").isdigit()


def _is_off(value: str | None) -> bool:
    return value is not None and value.lower() in {"false", "0", "no", "none", "off"}


def _options(tokens: list[str]) -> list[tuple[str, str | None]]:
    options: list[tuple[str, str | None]] = []
    for i, token in enumerate(tokens):
        name, equals, value = token.partition("=")
        if token.startswith("-") and not _is_number(token.lstrip("-")):
            if not equals:
                following = tokens[i + 1] if i + 1 < len(tokens) else "-"
                options.append((_name(token), None if following.startswith("-") else following))
            else:
                options.append((_name(name), value))
        elif equals and name.replace(".", "").replace("_", "").replace("+", "").isalnum():
            options.append((_name(name), value))
    return options


def _name(written: str) -> str:
    """`--Model-Path` and `++trainer.model_path` as `model_path`; `-m` keeps its dash."""
    if written.startswith("-") and not written.startswith("--") and len(written) <= 3:
        return written
    return written.lstrip("-+").lower().replace("-", "_").rsplit(".", 1)[-1]
