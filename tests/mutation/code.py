"""Faults in code: one node of the syntax tree of a function changed, and the function given the code compiled from it.

Which functions are reached is not guessed but watched: a profile hook is set while the step judges its golden cases. Sources are
read, never written; a mutant exchanges `__code__` of one function of this process, and gives it back. Machine code (kernels) is
out of reach for that.
"""

from __future__ import annotations

import ast
import copy
import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

from tests.mutation.mutant import Mutant, clear_caches

__all__ = ["Reached", "code_mutants", "reached"]

ROOT = Path(__file__).resolve().parents[2]

FLIPPED: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.GtE, ast.LtE),
    ast.LtE: (ast.Gt, ast.Lt),
    ast.Gt: (ast.LtE, ast.GtE),
    ast.GtE: (ast.Lt, ast.Gt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
"""What a comparison becomes: its opposite; and with or without equality."""
SIGNS: dict[type[ast.AST], str] = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Is: "is",
}
SIGNS |= {ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in", ast.BitAnd: "&", ast.BitOr: "|", ast.And: "and"}
SIGNS |= {ast.Or: "or", ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
CALLS = {"equal": "not_equal", "not_equal": "equal", "is_null": "is_valid", "is_valid": "is_null"}
CALLS |= {
    "any": "all",
    "all": "any",
    "maximum": "minimum",
    "minimum": "maximum",
    "argmax": "argmin",
    "argmin": "argmax",
}
CALLS |= {"less": "greater", "greater": "less", "fmin": "fmax", "fmax": "fmin", "max": "min", "min": "max"}
COMPARING = {"equal", "not_equal", "is_null", "is_valid", "less", "greater"}
JOINED: dict[type[ast.AST], type[ast.AST]] = {
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.And: ast.Or,
    ast.Or: ast.And,
}
COMPILED = ("kernel", "inlined")
"""Decorators of `curation.text.jit`."""
RECKONED: dict[type[ast.AST], type[ast.AST]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
}


@dataclass(frozen=True)
class Reached:
    """A function that ran."""

    file: Path
    name: str
    """Qualified."""
    line: int
    """Its first, decorators included."""

    @property
    def module(self) -> str:
        return ".".join(self.file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def reached(work: Callable[[], Any], folders: tuple[str, ...]) -> list[Reached]:
    """The functions of files below some folders of this project that some work runs through, by place."""
    codes: set[CodeType] = set()
    within = tuple(str(ROOT / folder) for folder in folders)

    def watch(frame: Any, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(within):
            codes.add(frame.f_code)

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        work()
    finally:
        sys.setprofile(before)
    found = {
        Reached(Path(code.co_filename), code.co_qualname, code.co_firstlineno)
        for code in codes
        if "<" not in code.co_qualname  # what stands inside of a function comes with it
    }
    return sorted(found, key=lambda one: (str(one.file), one.line))


# -- one node ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Change:
    """One node of a function to be changed: the how-manieth in the order of `ast.walk`, into what."""

    place: int
    of: str
    told: str
    make: Callable[[Any], None]
    """Changes the node in place, in a copy of the tree."""


@cache
def _tree(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"), str(file))


def _function(tree: ast.Module, one: Reached) -> ast.FunctionDef:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            if first == one.line and node.name == one.name.rpartition(".")[2]:
                return node
    raise LookupError(f"{one.file}:{one.line}: no function {one.name}; was the file changed since it was loaded?")


def _changes(function: ast.FunctionDef) -> Iterator[Change]:
    """Every fault that one node of a function's body may get."""
    skipped = _untouched(function)
    for place, node in enumerate(ast.walk(function)):
        if id(node) not in skipped:
            for of, told, make in _faults(node):
                yield Change(place, of, told, make)


def _faults(node: ast.AST) -> Iterator[tuple[str, str, Callable[[Any], None]]]:
    """Of one node: the class of the fault, how it is told, and what makes it in place."""
    if isinstance(node, ast.Compare):
        for i, sign in enumerate(node.ops):
            for new in FLIPPED[type(sign)]:
                told = f"`{ast.unparse(node)}`: {SIGNS[type(sign)]} -> {SIGNS[new]}"
                yield "comparison", told, partial(_with_sign, place=i, new=new)
    elif isinstance(node, ast.BoolOp | ast.BinOp) and type(node.op) in (JOINED | RECKONED):
        other = (JOINED | RECKONED)[type(node.op)]
        of = "logic" if type(node.op) in JOINED else "scoring"
        yield of, f"`{_short(node)}`: {SIGNS[type(node.op)]} -> {SIGNS[other]}", partial(_with, name="op", make=other)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.Invert):
        yield "logic", f"`{_short(node)}`: without it", _without_sign
    elif isinstance(node, ast.IfExp | ast.If) and not isinstance(node.test, ast.Compare | ast.BoolOp):
        yield "logic", f"`if {_short(node.test)}`: not", _negated
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CALLS:
        name = node.func.attr
        of = "comparison" if name in COMPARING else "logic"
        yield of, f"`{_short(node)}`: {name} -> {CALLS[name]}", partial(_calling, name=CALLS[name])
    elif isinstance(node, ast.Constant) and type(node.value) is int:
        for number in (node.value + 1, node.value - 1):
            yield "scoring", f"`{node.value}` -> {number}", partial(_with, name="value", make=partial(int, number))
    elif isinstance(node, ast.Constant) and isinstance(node.value, float):
        larger = node.value * (1 + PART)
        yield "scoring", f"`{node.value}` -> {larger:g}", partial(_with, name="value", make=partial(float, larger))


PART = 0.2


def _with_sign(node: Any, place: int, new: type[ast.cmpop]) -> None:
    node.ops[place] = new()


def _with(node: Any, name: str, make: Callable[[], Any]) -> None:
    setattr(node, name, make())


def _calling(node: Any, name: str) -> None:
    node.func.attr = name


def _untouched(function: ast.FunctionDef) -> set[int]:
    """Nodes that decide nothing: what is raised, asserted or annotated, docstrings, decorators, defaults."""
    found: set[int] = set()
    roots: list[ast.AST] = [*function.decorator_list, function.args, *([function.returns] if function.returns else [])]
    for node in ast.walk(function):
        if isinstance(node, ast.Raise | ast.Assert):
            roots.append(node)
        elif isinstance(node, ast.AnnAssign):
            roots.append(node.annotation)
        elif isinstance(node, ast.Subscript) and not isinstance(node.slice, ast.Compare):
            roots += [one for one in ast.walk(node.slice) if isinstance(one, ast.Constant)]
    for root in roots:
        found |= {id(node) for node in ast.walk(root)}
    return found


def _short(node: ast.AST) -> str:
    text = ast.unparse(node)
    return text if len(text) <= 70 else text[:67] + "..."


def _without_sign(node: Any) -> None:
    """`not x` becomes `not not x`; `~x` of truth values becomes `x ^ False`."""
    inner = node.operand
    if isinstance(node.op, ast.Not):
        node.operand = ast.UnaryOp(ast.Not(), inner)
    else:
        node.__class__ = ast.BinOp
        node.left, node.op, node.right = inner, ast.BitXor(), ast.Constant(value=False)


def _negated(node: ast.If | ast.IfExp) -> None:
    node.test = ast.UnaryOp(ast.Not(), node.test)


def _is_compiled(function: ast.FunctionDef) -> bool:
    """Whether it is a kernel: its machine code is made once, whatever becomes of the function."""
    return any(isinstance(one, ast.Name) and one.id in COMPILED for one in function.decorator_list)


# -- into the running process --------------------------------------------------------------


def code_mutants(step: str, functions: list[Reached], *, kinds: set[str], scores: bool = False) -> Iterator[Mutant]:
    """Every fault of some kinds in some functions."""
    caches = {(one.module, one.name) for one in functions}
    for one in functions:
        tree = _tree(one.file)
        node = _function(tree, one)
        if _is_compiled(node):
            continue
        taken: dict[str, int] = {}
        for change in _changes(node):
            if change.of not in kinds:
                continue
            again = taken[change.told] = taken.get(change.told, 0) + 1
            mark = f" ({again}.)" if again > 1 else ""
            place = f"{one.file.relative_to(ROOT)}: {one.name}: {change.told}{mark}"
            yield Mutant(step, "scoring" if scores else change.of, place, _applying(one, change, caches), scores)


def _applying(one: Reached, change: Change, caches: set[tuple[str, str]]) -> Callable[[], Any]:
    @contextmanager
    def apply() -> Iterator[None]:
        function = _running(one)
        if function is None:
            raise LookupError(f"{one.file}:{one.line}: {one.name} is not there any more")
        before = function.__code__
        clear_caches(caches)
        function.__code__ = _changed(one, change, before)
        try:
            yield
        finally:
            function.__code__ = before
            clear_caches(caches)

    return apply


@cache
def _running(one: Reached) -> FunctionType | None:
    """The function of this process that came from a place in a file."""
    for function in gc.get_objects():
        if type(function) is FunctionType:
            code = function.__code__
            if (code.co_filename, code.co_firstlineno, code.co_qualname) == (str(one.file), one.line, one.name):
                return function
    return None


def _changed(one: Reached, change: Change, before: CodeType) -> CodeType:
    tree = copy.deepcopy(_tree(one.file))
    for place, node in enumerate(ast.walk(_function(tree, one))):
        if place == change.place:
            change.make(node)
            break
    ast.fix_missing_locations(tree)
    module = compile(tree, str(one.file), "exec", dont_inherit=True)
    found = [code for code in _codes(module) if (code.co_qualname, code.co_firstlineno) == (one.name, one.line)]
    assert len(found) == 1, f"{one}: {len(found)} pieces of code"
    assert found[0].co_freevars == before.co_freevars, f"{one}: it closes over other names"
    return found[0]


def _codes(code: CodeType) -> Iterator[CodeType]:
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield inner
            yield from _codes(inner)
