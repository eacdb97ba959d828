"""The survivors that were looked at: `accepted.toml`, each with the reason why no test can or should kill it.

They are found by file, function and change, so moving code within a file keeps them valid. `change = "*"` accepts every
survivor of the function.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tests.mutants.mutations import Key, Mutant

PATH = Path(__file__).with_name("accepted.toml")


@dataclass(frozen=True)
class Accepted:
    file: str
    function: str
    change: str
    reason: str

    def covers(self, mutant: Mutant) -> bool:
        return (self.file, self.function) == (mutant.file, mutant.function) and self.change in ("*", mutant.change)


def accepted(path: Path = PATH) -> list[Accepted]:
    """All of them. Raises `ValueError` for one without a reason."""
    found = [Accepted(**entry) for entry in tomllib.loads(path.read_text()).get("survivor", [])]
    for one in found:
        if not one.reason.strip():
            raise ValueError(f"{path}: {one.file} {one.function} {one.change!r} has no reason")
    return found


def entry(mutant: Mutant) -> str:
    """What to add to the file to accept a survivor."""
    lines = (f"file = {_quoted(mutant.file)}", f"function = {_quoted(mutant.function)}")
    return "\n".join(["[[survivor]]", *lines, f"change = {_quoted(mutant.change)}", 'reason = ""'])


def printed(text: str) -> set[Key]:
    """The mutants in the output of a run, which has other lines too."""
    keys: set[Key] = set()
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if line == "[[survivor]]":
            found = tomllib.loads("\n".join(lines[number + 1 : number + 4]))
            keys.add((found["file"], found["function"], found["change"]))
    return keys


def stale(entries: Iterable[Accepted], files: set[str], survivors: list[Mutant]) -> list[Accepted]:
    """Those of `files` that are no survivors: a test kills them by now, or the code changed."""
    return [one for one in entries if one.file in files and not any(one.covers(mutant) for mutant in survivors)]


def _quoted(text: str) -> str:
    if "'" not in text:
        return f"'{text}'"
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
