"""Puts a mutant into the running process, without importing anything again.

A change inside a function replaces the code of the function object, so everything that already refers to the function
gets the mutant. A change of a statement of the module or of a class is executed in the module's namespace, and what
comes out differently is transplanted: defaults into the existing functions, values into every module that imported them
under the same name.
"""

from __future__ import annotations

import gc
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from inspect import CO_NEWLOCALS
from pathlib import Path
from types import CodeType, FunctionType, ModuleType

from tests.mutants.mutations import Mutant

PACKAGES = ("groups", "offsets", "kcoord", "tests")


class NotApplied(Exception):
    """The change makes no difference to the code."""


def functions_in(code: CodeType) -> Iterator[CodeType]:
    """The code of each outermost function: of the module, and of its classes."""
    for constant in code.co_consts:
        if not isinstance(constant, CodeType):
            continue
        if not constant.co_flags & CO_NEWLOCALS:  # the body of a class
            yield from functions_in(constant)
        elif constant.co_name == "<lambda>" or not constant.co_name.startswith("<"):  # a comprehension runs once
            yield constant


def changed_function(original: CodeType, mutated: CodeType) -> tuple[CodeType, CodeType] | None:
    """The function that differs, before and after; None if the difference is outside functions."""
    pairs = list(zip(functions_in(original), functions_in(mutated), strict=True))
    different = [pair for pair in pairs if pair[0] != pair[1]]
    if len(different) > 1:
        raise AssertionError(f"one change, but {len(different)} functions differ")
    return different[0] if different else None


class Live:
    """The function objects of the modules under test, by their code."""

    def __init__(self, files: Iterable[Path]) -> None:
        names = {str(path.resolve()) for path in files}
        gc.unfreeze()  # what pytest has collected is frozen, and would not be listed
        self.found: dict[tuple[str, str, int], list[FunctionType]] = defaultdict(list)
        for one in gc.get_objects():
            # Not isinstance, which would ask a weak proxy for the class of what is gone.
            if type(one) is FunctionType and one.__code__.co_filename in names:
                code = one.__code__
                self.found[code.co_filename, code.co_qualname, code.co_firstlineno].append(one)
        gc.freeze()
        assert self.found, "no function of the files exists: every change would make no difference"

    def of(self, code: CodeType) -> list[FunctionType]:
        alike = self.found[code.co_filename, code.co_qualname, code.co_firstlineno]
        # Code that has run is not equal to itself compiled again, since it carries what the interpreter has learnt.
        positions = list(code.co_positions())
        return [function for function in alike if list(function.__code__.co_positions()) == positions]

    def using(self, names: set[str]) -> Iterator[CodeType]:
        """The code of the functions that mention one of `names`."""
        for functions in self.found.values():
            for function in functions:
                if names & set(_mentioned(function.__code__)):
                    yield function.__code__


def _mentioned(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _mentioned(constant)


def put_into_function(live: Live, before: CodeType, after: CodeType) -> None:
    functions = live.of(before)
    if not functions:
        raise NotApplied
    for function in functions:
        function.__code__ = after


def put_into_module(mutant: Mutant) -> None:
    """Execute the changed statement and transplant what it made."""
    module = sys.modules[module_name(mutant.file)]
    namespace = dict(vars(module))
    exec(mutant.statement(), namespace)
    transplanted = False
    for name, value in namespace.items():
        old = vars(module).get(name)
        if name.startswith("__") or value is old:
            continue
        if isinstance(value, type) and isinstance(old, type):
            transplanted |= _transplant_class(old, value)
        elif isinstance(value, FunctionType) and isinstance(old, FunctionType):
            transplanted |= _transplant_defaults(old, value)
        elif value != old:
            transplanted = True
            setattr(module, name, value)
            _rebind(name, old, value)
    if not transplanted:
        raise NotApplied


def module_name(file: str) -> str:
    return file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _transplant_class(old: type, new: type) -> bool:
    done = False
    for name, value in vars(new).items():
        mine = vars(old).get(name)
        if isinstance(value, FunctionType) and isinstance(mine, FunctionType):
            done |= _transplant_defaults(mine, value)
        elif isinstance(value, bool | int | float | str | tuple | frozenset) and value != mine and name[:2] != "__":
            setattr(old, name, value)
            done = True
    return done


def _transplant_defaults(old: FunctionType, new: FunctionType) -> bool:
    same = old.__defaults__ == new.__defaults__ and old.__kwdefaults__ == new.__kwdefaults__
    if not same:
        old.__defaults__, old.__kwdefaults__ = new.__defaults__, new.__kwdefaults__
    return not same


def _rebind(name: str, old: object, new: object) -> None:
    for module in list(sys.modules.values()):
        if isinstance(module, ModuleType) and module.__name__.partition(".")[0] in PACKAGES:
            mine = vars(module).get(name)
            if mine is old or (type(mine) is type(old) and mine == old):
                setattr(module, name, new)
