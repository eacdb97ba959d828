"""Completion in shells: a script with the options of the tool, which `--completion` prints."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

FILES = ("FILE",)
"""Names of values that are files."""


class Option(NamedTuple):
    """One option: its name without the hyphens, its help, the name of its value (None: it has none)."""

    name: str
    text: str
    value: str | None
    needs_value: bool

    @property
    def is_file(self) -> bool:
        """Its value is a file."""
        return self.value in FILES


def script(shell: str, parser: argparse.ArgumentParser) -> str:
    """What `shell`, one of `SHELLS`, reads to complete the options of the parser's program."""
    return SHELLS[shell](parser.prog, list(_options(parser)))


def _options(parser: argparse.ArgumentParser) -> Iterator[Option]:
    formatter = parser._get_formatter()
    for action in parser._actions:
        if action.help is argparse.SUPPRESS or not action.option_strings:
            continue
        value = None if action.nargs == 0 else str(action.metavar or action.dest.upper())
        name, text = action.option_strings[-1].removeprefix("--"), formatter._expand_help(action)
        yield Option(name, text, value, value is not None and action.nargs != "?")


def _bash(prog: str, options: list[Option]) -> str:
    names = " ".join(f"--{option.name}" for option in options)
    files = "|".join(f"--{option.name}" for option in options if option.is_file)
    others = "|".join(f"--{option.name}" for option in options if option.needs_value and not option.is_file)
    return (
        f"_{prog}() {{\n"
        "  local IFS=$'\\n'\n"
        '  case "$3" in\n'
        f'    {files}) COMPREPLY=($(compgen -f -- "$2")) ;;\n'
        f"    {others}) COMPREPLY=() ;;\n"
        f"    *) IFS=$' \\n'; COMPREPLY=($(compgen -W {_quoted(names)} -- \"$2\")) ;;\n"
        "  esac\n"
        "}\n"
        f"complete -o filenames -F _{prog} {prog}\n"
    )


def _zsh(prog: str, options: list[Option]) -> str:
    lines = []
    for option in options:
        text = "".join(f"\\{c}" if c in "[]:\\" else c for c in option.text)
        colons = ":" if option.needs_value else "::"
        value = "" if option.value is None else f"{colons}{option.value.replace(':', ' ')}:"
        files = "_files" if option.is_file else ""
        lines.append(f"    {_quoted(f'*--{option.name}[{text}]{value}{files}')}")
    specs = " \\\n".join(lines)
    return f"#compdef {prog}\n_{prog}() {{\n  _arguments \\\n{specs}\n}}\ncompdef _{prog} {prog}\n"


def _fish(prog: str, options: list[Option]) -> str:
    lines = [f"complete -c {prog} -f"]
    for option in options:
        takes = " -r -F" if option.is_file else " -x" if option.needs_value else ""
        text = option.text.replace("\\", "\\\\").replace("'", "\\'")
        lines.append(f"complete -c {prog} -l {option.name}{takes} -d '{text}'")
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


SHELLS: Mapping[str, Callable[[str, list[Option]], str]] = {"bash": _bash, "zsh": _zsh, "fish": _fish}
