"""The mutants of a module, and how one is put into the running process."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tests.mutants.accepted import Accepted, accepted, entry, stale
from tests.mutants.mutations import Mutant, mutants_of
from tests.mutants.swap import Live, NotApplied, changed_function, put_into_function, put_into_module

SOURCE = '''"""A module."""
from __future__ import annotations
from dataclasses import dataclass

LIMIT = 7

@dataclass(frozen=True)
class Range:
    low: int = 0

    @property
    def empty(self) -> bool:
        return self.low > LIMIT

def clamped(value: int, low: int = 3) -> int:
    assert value != 4
    if value < low and value != -1:
        raise ValueError("below the limit of 3")
    return min(value, LIMIT)
'''


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "sample_under_mutation.py"
    path.write_text(SOURCE)
    made = ModuleType("sample_under_mutation")
    made.__file__ = str(path)
    monkeypatch.setitem(sys.modules, made.__name__, made)
    exec(compile(SOURCE, str(path), "exec", dont_inherit=True), vars(made))
    return made


def mutants() -> dict[str, Mutant]:
    return {mutant.change: mutant for mutant in mutants_of("sample_under_mutation.py", SOURCE)}


def put(change: str) -> None:
    mutant = mutants()[change]
    path = Path(mutant.file).resolve()
    pair = changed_function(compile(SOURCE, str(path), "exec", dont_inherit=True), mutant.compiled())
    if pair is None:
        put_into_module(mutant)
    else:
        put_into_function(Live([path]), *pair)


def test_a_function_gets_the_code_of_the_mutant(module: ModuleType) -> None:
    clamped = module.clamped
    put("return min(value, LIMIT)  ->  return max(value, LIMIT)")
    assert clamped(5) == 7


def test_functions_are_found_that_searches_for_garbage_leave_out(module: ModuleType) -> None:
    gc.freeze()
    put("return min(value, LIMIT)  ->  return max(value, LIMIT)")
    assert module.clamped(5) == 7


def test_a_property_is_reached(module: ModuleType) -> None:
    whole = module.Range(7)
    assert not whole.empty
    put("return self.low > LIMIT  ->  return self.low >= LIMIT")
    assert whole.empty


def test_a_constant_changes_for_who_uses_it(module: ModuleType) -> None:
    put("LIMIT = 7  ->  LIMIT = 8")
    assert module.clamped(9) == 8


def test_a_default_changes_in_the_class_that_exists(module: ModuleType) -> None:
    put("low: int = 0  ->  low: int = 1")
    assert module.Range() == module.Range(1)
    put("value: int, low: int=3  ->  value: int, low: int=4")
    with pytest.raises(ValueError):
        module.clamped(3)


def test_a_change_without_effect_is_not_counted(module: ModuleType) -> None:
    del module.clamped
    with pytest.raises(NotApplied):
        put("return min(value, LIMIT)  ->  return None")


def test_a_survivor_is_accepted_by_what_was_changed(tmp_path: Path) -> None:
    one, other = list(mutants().values())[:2]
    path = tmp_path / "accepted.toml"
    path.write_text(entry(one))
    with pytest.raises(ValueError, match="has no reason"):
        accepted(path)
    path.write_text(entry(one).replace('reason = ""', 'reason = "because"'))
    (found,) = accepted(path)
    assert found.covers(one)
    assert not found.covers(other)
    assert stale([found], {one.file}, [other]) == [found]
    assert stale([found], {one.file}, [one]) == stale([found], {"another.py"}, []) == []
    assert Accepted(one.file, one.function, "*", "because").covers(one)


@pytest.mark.whole("a test of the mutants, which the default does not run")
def test_every_accepted_survivor_has_a_reason_and_a_mutant() -> None:
    for one in accepted():
        made = mutants_of(one.file, Path(one.file).read_text())
        assert any(one.covers(mutant) for mutant in made), f"{one.file} {one.function}: {one.change}"
