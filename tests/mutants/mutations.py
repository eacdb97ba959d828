"""The mutants of a module: each is one small change of its syntax tree.

Left alone: annotations, names of types, docstrings, decorators, texts that are not empty, assertions (they state
invariants and never validate input) and cases that only say `assert_never`, and whatever only builds the message of an
error.
"""

from __future__ import annotations
import __future__

import ast
import builtins
import dataclasses
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType

LONGEST = 100
"""A mutant is described by the largest expression around the change that has no more characters than this."""

COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult,
    ast.Mod: ast.Add,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}
CALLS = {"min": "max", "max": "min", "any": "all", "all": "any"}
REMOVED = (ast.Return, ast.Expr, ast.Raise, ast.Continue, ast.Break, ast.Delete)
ELEMENTS = (ast.Tuple, ast.List, ast.Set)

Key = tuple[str, str, str]
Undo = Callable[[], None]


@dataclass(frozen=True)
class Mutant:
    """A changed module. `key`: file, function and description, by which survivors are accepted."""

    file: str
    function: str
    change: str
    lines: range
    tree: ast.Module = field(repr=False)
    apply: Callable[[], Undo] = field(repr=False)
    top: int = 0
    """Index of the changed statement in the module."""

    @property
    def key(self) -> Key:
        return self.file, self.function, self.change

    def compiled(self) -> CodeType:
        """The code of the whole changed module."""
        undo = self.apply()
        try:
            return compile(self.tree, str(Path(self.file).resolve()), "exec", dont_inherit=True)
        finally:
            undo()

    def statement(self) -> CodeType:
        """The code of the changed statement of the module."""
        undo = self.apply()
        try:
            module = ast.Module([self.tree.body[self.top]], [])
            flags = __future__.annotations.compiler_flag
            return compile(module, str(Path(self.file).resolve()), "exec", flags, dont_inherit=True)
        finally:
            undo()

    def bound(self) -> set[str]:
        """The names that the changed statement binds, and that of the function with a changed default."""
        statement = self.tree.body[self.top]
        names = {self.function.rpartition(".")[2]} - {""}
        if isinstance(statement, ast.ClassDef | ast.FunctionDef):
            names.add(statement.name)
        targets = getattr(statement, "targets", None) or [getattr(statement, "target", None)]
        return names | {node.id for target in targets if target for node in ast.walk(target) if hasattr(node, "id")}


def mutants_of(file: str, source: str) -> list[Mutant]:
    """All mutants of a file. Two that read the same in one function are told apart by a number."""
    found: list[Mutant] = []
    seen: Counter[Key] = Counter()
    for mutant in _Maker(file, ast.parse(source)).module():
        seen[mutant.key] += 1
        if seen[mutant.key] > 1:
            numbered = f"{mutant.change}  #{seen[mutant.key]}"
            mutant = dataclasses.replace(mutant, change=numbered)
        found.append(mutant)
    return found


@dataclass
class _Place:
    """A node in its parent."""

    parent: ast.AST
    name: str
    index: int | None

    def put(self, node: ast.AST) -> Undo:
        if self.index is None:
            old = getattr(self.parent, self.name)
            setattr(self.parent, self.name, node)
            return lambda: setattr(self.parent, self.name, old)
        siblings = getattr(self.parent, self.name)
        old, index = siblings[self.index], self.index
        siblings[index] = node
        return lambda: siblings.__setitem__(index, old)


def _without(siblings: list[ast.AST], index: int) -> Callable[[], Undo]:
    def apply() -> Undo:
        removed = siblings.pop(index)
        return lambda: siblings.insert(index, removed)

    return apply


class _Maker:
    def __init__(self, file: str, tree: ast.Module) -> None:
        self.file, self.tree = file, tree
        self.functions: list[str] = []
        self.returns: list[ast.expr | None] = []
        self.path: list[ast.AST] = []
        self.top = 0

    def module(self) -> Iterator[Mutant]:
        for index, statement in enumerate(self.tree.body):
            self.top = index
            yield from self.visit(statement, _Place(self.tree, "body", index))

    def visit(self, node: ast.AST, place: _Place) -> Iterator[Mutant]:
        if _left_alone(node):
            return
        self.path.append(node)
        yield from self.of_node(node, place)
        scope = isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef)
        if scope:
            self.functions.append(node.name)
            self.returns.append(getattr(node, "returns", None))
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list", "ctx", "msg", "type_params"):
                continue
            if name == "exc" or (name == "slice" and not any(self.returns)):
                continue  # messages; types
            if isinstance(value, list):
                for index, child in enumerate(value):
                    if isinstance(child, ast.AST):
                        yield from self.visit(child, _Place(node, name, index))
            elif isinstance(value, ast.AST):
                yield from self.visit(value, _Place(node, name, None))
        if scope:
            self.functions.pop()
            self.returns.pop()
        self.path.pop()

    def of_node(self, node: ast.AST, place: _Place) -> Iterator[Mutant]:
        for new in _replacements(node, self.returns[-1] if self.returns else None):
            if not hasattr(new, "lineno"):
                ast.fix_missing_locations(ast.copy_location(new, node))
            yield self.mutant(lambda new=new: place.put(new), node, new)
        if isinstance(node, ast.If | ast.IfExp | ast.While):
            condition = _Place(node, "test", None)
            for value in (True, False) if not isinstance(node, ast.While) else (False,):
                if isinstance(node.test, ast.Constant):
                    break
                new = ast.copy_location(ast.Constant(value), node.test)
                self.path.append(node.test)
                yield self.mutant(lambda new=new: condition.put(new), node.test, new)
                self.path.pop()
        yield from self.removals(node, place)

    def removals(self, node: ast.AST, place: _Place) -> Iterator[Mutant]:
        """Removed conditions of comprehensions, elements, entries, and fields given to `replace`."""
        if isinstance(node, ast.comprehension):
            for index in range(len(node.ifs)):
                yield self.mutant(_without(node.ifs, index), node)
        if isinstance(node, ELEMENTS) and isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
            unpacked = isinstance(place.parent, ast.Assign) and isinstance(place.parent.targets[0], ast.Tuple)
            in_table = (not self.returns or self.returns[-1] is None) and not unpacked
            if in_table or isinstance(node, ast.Set):
                for index in range(len(node.elts)):
                    yield self.mutant(_without(node.elts, index), node, gone=node.elts[index])
        if isinstance(node, ast.Dict):
            for index in range(len(node.keys)):
                yield self.mutant(self.without_entry(node, index), node, gone=node.keys[index] or node.values[index])
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("replace", "evolve"):
            for index in range(len(node.keywords)):
                yield self.mutant(_without(node.keywords, index), node, gone=node.keywords[index])
        if isinstance(node, ast.Match):
            for index in range(len(node.cases)):
                if len(node.cases) > 1 and not _left_alone(node.cases[index]):
                    yield self.mutant(_without(node.cases, index), node, gone=node.cases[index].pattern)

    @staticmethod
    def without_entry(node: ast.Dict, index: int) -> Callable[[], Undo]:
        def apply() -> Undo:
            key, value = node.keys.pop(index), node.values.pop(index)

            def undo() -> None:
                node.keys.insert(index, key)
                node.values.insert(index, value)

            return undo

        return apply

    def mutant(
        self, apply: Callable[[], Undo], node: ast.AST, new: ast.AST | None = None, gone: ast.AST | None = None
    ) -> Mutant:
        shown = self.shown(node)
        before = _text(shown)
        if gone is not None and (len(before) > LONGEST or isinstance(node, ast.Match)):
            change = f"{_text(gone)}  ->  (removed)"
        elif shown is node and new is not None:
            change = f"{before}  ->  {_text(new)}"
        else:
            undo = apply()
            change = f"{before}  ->  {_text(shown)}"
            undo()
        lines = _lines(node, [*self.path])
        return Mutant(self.file, ".".join(self.functions), change, lines, self.tree, apply, self.top)

    def shown(self, node: ast.AST) -> ast.AST:
        shown = node
        for ancestor in reversed(self.path[: self.path.index(node)]):
            if isinstance(ancestor, ast.stmt) and hasattr(ancestor, "body"):
                break
            if isinstance(ancestor, ast.Module) or len(_text(ancestor)) > LONGEST:
                break
            shown = ancestor
        return shown


def _text(node: ast.AST) -> str:
    if isinstance(node, ast.If | ast.While | ast.For | ast.Match | ast.With | ast.FunctionDef | ast.ClassDef):
        return ast.unparse(node).partition("\n")[0]
    return " ".join(ast.unparse(node).split())


def _lines(node: ast.AST, path: list[ast.AST]) -> range:
    """The lines whose execution can notice the change: the whole simple statement, or the header."""
    for ancestor in reversed(path):
        if isinstance(ancestor, ast.stmt) and not hasattr(ancestor, "body") and not isinstance(ancestor, ast.Match):
            return range(ancestor.lineno, (ancestor.end_lineno or ancestor.lineno) + 1)
    located = next(one for one in [node, *reversed(path)] if hasattr(one, "lineno"))
    if isinstance(located, ast.Match):
        return range(located.lineno, located.lineno + 1)
    return range(located.lineno, (located.end_lineno or located.lineno) + 1)


def _left_alone(node: ast.AST) -> bool:
    if isinstance(node, ast.JoinedStr | ast.Assert | ast.Import | ast.ImportFrom):
        return True
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return True
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
        return True
    if isinstance(node, ast.If):
        return ast.unparse(node.test) == "TYPE_CHECKING"
    if isinstance(node, ast.match_case):
        return len(node.body) == 1 and ast.unparse(node.body[0]).startswith("assert_never(")
    return isinstance(node, ast.Assign) and (ast.unparse(node.targets[0]) == "__all__" or _is_type(node.value))


def _is_type(node: ast.expr) -> bool:
    """Is this a union of types? Constants have names in capitals, so `A_FLAG | ANOTHER` is not one."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return all(_is_type(part) or _names_type(part) for part in (node.left, node.right))
    return False


def _names_type(node: ast.expr) -> bool:
    if isinstance(node, ast.Subscript):
        return _names_type(node.value)
    if isinstance(node, ast.Name):
        return node.id in vars(builtins) or (node.id[0].isupper() and not node.id.isupper())
    return isinstance(node, ast.Constant) and node.value is None


def _replacements(node: ast.AST, returns: ast.expr | None) -> Iterator[ast.AST]:
    if isinstance(node, ast.Compare):
        for index, operator in enumerate(node.ops):
            for other in COMPARISONS[type(operator)]:
                yield ast.Compare(node.left, [*node.ops[:index], other(), *node.ops[index + 1 :]], node.comparators)
    elif isinstance(node, ast.BoolOp):
        yield ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
        for index in range(len(node.values)):
            rest = [*node.values[:index], *node.values[index + 1 :]]
            yield rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest)
    elif isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        yield ast.BinOp(node.left, OPERATORS[type(node.op)](), node.right)
    elif isinstance(node, ast.AugAssign) and type(node.op) in OPERATORS:
        yield ast.AugAssign(node.target, OPERATORS[type(node.op)](), node.value)
        yield ast.Pass()
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
        yield node.operand
    elif isinstance(node, ast.Constant):
        yield from _constants(node.value)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in CALLS:
        yield ast.Call(ast.Name(CALLS[node.func.id], ast.Load()), node.args, node.keywords)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "sorted":
        down = ast.Slice(step=ast.UnaryOp(ast.USub(), ast.Constant(1)))
        yield ast.Subscript(ast.Call(node.func, node.args, node.keywords), down, ast.Load())
    elif isinstance(node, ast.stmt):
        yield from _statements(node, returns)


def _constants(value: object) -> Iterator[ast.AST]:
    if isinstance(value, bool):
        yield ast.Constant(not value)
    elif isinstance(value, int | float):
        yield ast.Constant(value + 1)
    elif value in ("", b""):
        yield ast.Constant("mutant" if value == "" else b"mutant")


def _statements(node: ast.stmt, returns: ast.expr | None) -> Iterator[ast.AST]:
    if isinstance(node, ast.Return) and node.value is not None:
        constant = isinstance(node.value, ast.Constant)
        if returns is not None and ast.unparse(returns) == "bool":
            if not constant:
                yield ast.Return(ast.Constant(True))
                yield ast.Return(ast.Constant(False))
        elif not (isinstance(node.value, ast.Constant) and node.value.value is None):
            yield ast.Return(ast.Constant(None))
    elif isinstance(node, REMOVED) or _sets_part(node):
        yield ast.Pass()


def _sets_part(node: ast.stmt) -> bool:
    return isinstance(node, ast.Assign) and not isinstance(node.targets[0], ast.Name | ast.Tuple)
