"""Parses the functions of the program, and lists what their statements do with the names in them.

Each function is parsed once and by itself, so that the program never waits for a long file. Source is
used only if it compiles to the function's own lines: the file may have changed since the import.
"""

from __future__ import annotations
import __future__

import ast
import inspect
import io
import linecache
import operator
import os
import re
import tokenize
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from types import CodeType
from typing import Any, Literal, NamedTuple
from weakref import WeakKeyDictionary

from heapwatch.measure.introspection.attributes import nested_code
from heapwatch.runtime.own_files import read_bytes

_MOST_BYTES = 2_000_000
_MOST_CHARACTERS = 60_000  # some 1,500 lines, whose parsing stops other threads for 20 ms
_MOST_ENDS = 30  # lines after the last instruction, such as the rest of a long string
_NAME = "<heapwatch>"
_NO_WARNINGS: tuple[Any, ...] = ("ignore", None, Warning, re.compile(_NAME), 0)
_PARTS_OF_CODE = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")

_GROWING = frozenset(
    ("append", "appendleft", "extend", "extendleft", "add", "insert", "update", "setdefault", "put",
     "put_nowait", "push", "write", "writelines", "concat", "concatenate", "cat", "hstack", "vstack",
     "__setitem__")
)  # fmt: skip
_SHRINKING = frozenset(
    ("pop", "popleft", "popitem", "remove", "discard", "get", "get_nowait", "flush", "truncate")
)  # fmt: skip
_EMPTYING = frozenset(("clear", "cache_clear"))
_CONTAINERS = frozenset(
    ("list", "dict", "set", "deque", "defaultdict", "array", "bytearray", "zeros", "empty")
)
_INDEXERS = ("loc", "iloc", "at")
_PASSED_TO = frozenset(("heappush", "insort", "insort_left", "insort_right"))
_CONVERSIONS = frozenset(("int", "float", "round"))
_CLOCKS = frozenset(("time", "monotonic", "perf_counter"))
_ORDER: dict[type[ast.cmpop], str] = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "=="}
_FOLDED: dict[type[ast.operator], Any] = {
    ast.Mult: operator.mul,
    ast.Add: operator.add,
    ast.Sub: operator.sub,
}
_DEEPEST = 200  # depth of nested expressions
# Functions that run once for an object. `queue.Queue` and `asyncio.Queue` call their `_init` in `__init__`;
# another one, such as `init_episode`, may run again and again.
SETTING_UP = ("__init__", "__post_init__", "__new__", "__setstate__", "setup", "_init")
# `dataclass` and the like make these without source. They use every attribute, and bound none.
_GENERATED = frozenset(
    (*SETTING_UP, "__repr__", "__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__hash__")
)

# How code uses a name: as an attribute, a global variable or a local variable. One name may stand for three
# different objects.
Scope = Literal["attribute", "global", "local", "any"]
Deed = Literal[
    "grows",  # adds items
    "shrinks",  # removes items
    "empties",  # removes all items
    "trims",  # cuts to a length
    "resets",  # assigns any object, in a function that may run again
    "renews",  # assigns a new object again and again
    "stores",  # stores under a key
    "changes",  # stores inside an item, or stores a value computed from the items
    "rebinds",  # assigns a value computed from the old object
    "assigned",  # an attribute or a constant key that gets a value
    "loaded",  # an attribute or a global variable whose value is taken
]


class Operand(NamedTuple):
    """An expression: a name, a number, the length of a name, the time, or a combination of other operands."""

    kind: Literal[
        "name", "number", "float", "length", "clock", "modulo", "difference", "comparison", "call", "other"
    ]
    value: Any = None
    parts: tuple[Any, ...] = ()


_OTHER = Operand("other")
_UNUSED = ("float", "comparison", "call", "other")  # values for which a name stands itself


@dataclass
class Statements:
    """The deeds, conditions, keys and values in the statements of a function.

    Attributes:
        acts: name, scope, deed and line.
        returns: the comparisons whose result it returns.
        guards: conditions, with the first and the last line that run if they hold.
        keys: containers, with the keys under which items are stored.
        drops: containers, with the keys under which items are removed.
        cuts: containers, with the ends of the slices that are kept or deleted.
        assigned: the value assigned to each name: the first modulo, else the last value.
        missing: whether the source is unknown.

    """

    acts: list[tuple[str, Scope, Deed, int]] = field(default_factory=list)
    returns: list[Operand] = field(default_factory=list)
    guards: list[tuple[Operand, int, int]] = field(default_factory=list)
    keys: list[tuple[str, Operand]] = field(default_factory=list)
    drops: list[tuple[str, Operand]] = field(default_factory=list)
    cuts: list[tuple[str, list[Operand]]] = field(default_factory=list)
    assigned: dict[str, Operand] = field(default_factory=dict)
    missing: bool = False


_parsed: WeakKeyDictionary[CodeType, Statements] = WeakKeyDictionary()


def is_read(code: CodeType) -> bool:
    """Whether `statements_of` has read the source of a function."""
    return code in _parsed


def statements_of(code: CodeType) -> Statements:
    """The statements of a function, read from its source once."""
    statements = _parsed.get(code)
    if statements is None:
        body = source_of(code)
        statements = _parsed[code] = statements_in(body or [], code)
        statements.missing = body is None and code.co_name not in ("<lambda>", *_PARTS_OF_CODE, *_GENERATED)
    return statements


def statements_in(body: list[ast.stmt], code: CodeType) -> Statements:
    """Read these statements, the body of a function with this code."""
    reader = _Reader(code)
    for statement in body:
        with suppress(RecursionError):
            for node in _parts(statement):
                reader.read(node)
    return reader.statements


def _parts(statement: ast.stmt) -> list[ast.AST]:
    """The parts of a statement in the order of the source, without annotations and inner functions.

    Raises:
        RecursionError: they are nested too deeply to be looked at.

    """
    parts: list[ast.AST] = []
    pending: list[tuple[ast.AST | None, int]] = [(statement, 0)]
    while pending:
        node, depth = pending.pop()
        if node is None:
            continue
        if depth > _DEEPEST:
            raise RecursionError
        parts.append(node)
        children: list[ast.AST | None] = list(ast.iter_child_nodes(node))
        match node:
            case ast.FunctionDef(args=args) | ast.AsyncFunctionDef(args=args):
                children = [*node.decorator_list, *args.defaults, *args.kw_defaults]
            case ast.ClassDef():
                children = [*node.decorator_list, *node.bases]
            case ast.AnnAssign():
                children = [node.target, node.value]
        pending += [(child, depth + 1) for child in reversed(children)]
    return parts


class _Reader:
    def __init__(self, code: CodeType) -> None:
        self.statements = Statements()
        parts = [one for one in code.co_consts if type(one) is CodeType and one.co_name.startswith("<")]
        self._own = {name for one in (code, *parts) for name in (*one.co_varnames, *one.co_cellvars)}
        self._locals = {*self._own, *code.co_freevars}
        self._runs_again = bool(code.co_flags & inspect.CO_OPTIMIZED) and code.co_name not in SETTING_UP
        self._aliases: dict[str, tuple[str, Scope]] = {}
        self._loops: list[range] = []  # lines
        # Private names are `_Class__name` in the code, and `__name` in the source.
        names = [name for name in (*code.co_names, *self._locals) if name.startswith("_")]
        self._private = {"__" + name.partition("__")[2]: name for name in names}

    def read(self, node: ast.AST) -> None:
        if isinstance(node, ast.For | ast.AsyncFor | ast.While):
            self._loops.append(range(node.body[0].lineno, (node.end_lineno or 0) + 1))
        match node:
            case ast.Attribute(value=value, attr=attr, ctx=ast.Load()):
                base = _container(value)
                if attr in _GROWING or attr in _SHRINKING:
                    self._act(base, "grows" if attr in _GROWING else "shrinks", base.end_lineno)
                elif attr in _EMPTYING:
                    self._act(base, "empties" if base is value else "shrinks", base.end_lineno)
                self._act(node, "loaded", node.end_lineno)
            case ast.Attribute(ctx=ast.Store()):
                self._act(node, "assigned", node.lineno)
            case ast.Name(id=name, ctx=ast.Load()) if name not in self._locals:
                self._act(node, "loaded", node.lineno)
            case ast.Call(args=[first, *_]) if _called(node) in _PASSED_TO:
                self._act(first, "grows", first.lineno)
            case ast.Call(func=ast.Attribute(value=value, attr="pop"), args=[key, *_]):
                self._drop(value, key)
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    self._assign(target, value)
            case (
                ast.AnnAssign(target=target, value=ast.expr() as value)
                | ast.NamedExpr(target=target, value=value)
            ):
                self._assign(target, value)
            case ast.AugAssign(target=target, op=sign, value=value):
                self._assign(target, ast.BinOp(target, sign, value))
            case ast.Subscript(value=value, slice=ast.Slice() as cut, ctx=ast.Del()):
                self._cut(_container(value), cut, node.lineno, is_empty=_container(value) is value)
            case ast.Subscript(value=value, slice=key, ctx=ast.Del()):
                self._act(_container(value), "shrinks", node.lineno)
                self._drop(value, key)
            case (
                ast.If(test=test, body=[*_, last])
                | ast.While(test=test, body=[*_, last])
                | ast.IfExp(test=test, body=last)
            ):
                for condition in self._conditions(test):
                    self.statements.guards.append((condition, test.lineno, last.end_lineno or last.lineno))
            case ast.Return(value=ast.expr() as value):
                self.statements.returns += self._conditions(value)

    def _named(self, node: ast.AST) -> tuple[str, Scope] | None:
        if isinstance(node, ast.Attribute):
            return self._private.get(node.attr, node.attr), "attribute"
        if isinstance(node, ast.Name):
            return node.id, "local" if node.id in self._locals else "global"
        return None

    def _act(self, node: ast.AST, deed: Deed, line: int | None) -> None:
        named = self._named(node)
        if named is not None:
            self.statements.acts.append((*named, deed, line or 0))
            assigns = deed in ("resets", "renews", "rebinds")
            if named[1] == "local" and not assigns and named[0] in self._aliases:
                self.statements.acts.append((*self._aliases[named[0]], deed, line or 0))

    def _around(self, node: ast.AST, named: tuple[str, Scope]) -> list[ast.AST]:
        """A name in an expression, and the expressions that contain it."""
        inner = [one for child in ast.iter_child_nodes(node) for one in self._around(child, named)]
        return [*inner, node] if inner or self._named(node) == named else []

    def _assign(self, target: ast.expr, value: ast.expr) -> None:
        container = _container(target)
        named = self._named(container)
        match target:
            case ast.Tuple(elts=targets) | ast.List(elts=targets):
                values = value.elts if isinstance(value, ast.Tuple | ast.List) else []
                if len(values) != len(targets):
                    values = [value] * len(targets)
                for part, part_value in zip(targets, values, strict=True):
                    self._assign(part, part_value)
            case ast.Subscript(slice=ast.Slice() as cut, value=whole) if whole is container:
                self._cut(container, cut, target.lineno, is_empty=not getattr(value, "elts", True))
            case ast.Subscript(slice=key):
                if isinstance(key, ast.Constant) and type(key.value) is str:
                    self.statements.acts.append((key.value, "any", "assigned", target.lineno))
                if named is not None:
                    changes = target.value is not container or self._around(value, named)
                    self._act(container, "changes" if changes else "stores", target.lineno)
                    self.statements.keys.append((named[0], self._operand(key)))
            case _ if named is not None:
                self._bind(target, value, named)

    def _bind(self, target: ast.expr, value: ast.expr, named: tuple[str, Scope]) -> None:
        name, other, around = named[0], self._named(value), self._around(value, named)
        cuts = [
            node.slice
            for node in around
            if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice) and node.value in around
        ]
        if around:
            self._act(target, "rebinds", target.lineno)
        if cuts:
            self._cut(target, cuts[0], target.lineno)
        elif any(map(_adds, around)):
            self._act(target, "grows", target.lineno)
        else:
            lasts = self._runs_again and name not in self._own
            repeats = lasts or any(target.lineno in lines for lines in self._loops)
            if repeats and not around and _is_new(value):
                self._act(target, "renews", target.lineno)
            if lasts:
                self._act(target, "resets", target.lineno)
        if named[1] == "local" and other is not None:
            self._aliases[name] = other
        if self.statements.assigned.get(name, _OTHER).kind != "modulo":
            self.statements.assigned[name] = self._operand(value)

    def _drop(self, container: ast.expr, key: ast.expr) -> None:
        named = self._named(container)
        if named is not None:
            self.statements.drops.append((named[0], self._operand(key)))

    def _cut(self, container: ast.expr, cut: ast.Slice, line: int, *, is_empty: bool = False) -> None:
        named = self._named(container)
        if is_empty and cut.lower is cut.upper is None:
            self._act(container, "empties", line)
        elif named is not None:
            self._act(container, "trims", line)
            ends = [self._operand(end) for end in (cut.lower, cut.upper) if end]
            self.statements.cuts.append((named[0], ends))

    def _conditions(self, test: ast.expr) -> Iterator[Operand]:
        match test:
            case ast.BoolOp(op=joint, values=values):
                for value in values if isinstance(joint, ast.And) else values[-1:]:
                    yield from self._conditions(value)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                yield from self._conditions(operand)
            case ast.Compare(left=first, ops=signs, comparators=others):
                for left, sign, right in zip([first, *others], signs, others, strict=False):
                    if type(sign) in _ORDER:
                        parts = self._operand(left), self._operand(right)
                        yield Operand("comparison", _ORDER[type(sign)], parts)
            case _:
                yield self._operand(test)

    def _operand(self, node: ast.expr) -> Operand:
        number = _number(node)
        if number is not None:
            return Operand("number", number)
        match node:
            case ast.Constant(value=float(seconds)) if seconds.is_integer():
                return Operand("float", int(seconds))
            case ast.Name(id=name):
                value = self.statements.assigned.get(name, _OTHER)
                return Operand("name", name) if value.kind in _UNUSED else value
            case ast.Attribute():
                return Operand("name", self._private.get(node.attr, node.attr))
            case ast.UnaryOp(operand=inner) | ast.NamedExpr(value=inner):
                return self._operand(inner)
            case ast.BinOp(op=ast.Mod()):
                return Operand("modulo", None, (self._operand(node.left), self._operand(node.right)))
            case ast.BinOp(op=ast.Sub()):
                return Operand("difference", None, (self._operand(node.left), self._operand(node.right)))
            case ast.Call(args=args):
                first, called = self._operand(args[0]) if args else _OTHER, _called(node)
                if called == "len" and first.kind == "name":
                    return Operand("length", first.value)
                if called in _CLOCKS and not args:
                    return Operand("clock")
                return first if called in _CONVERSIONS else Operand("call", called)
        return _OTHER


def _container(node: ast.expr) -> ast.expr:
    """The container of an item; `table.loc[…]` is one of the table's."""
    while isinstance(node, ast.Subscript):
        node = node.value
        if isinstance(node, ast.Attribute) and node.attr in _INDEXERS:
            node = node.value
    return node


def _called(node: ast.AST) -> str | None:
    """The last name of the function that an expression calls."""
    match node:
        case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name)):
            return name
    return None


def _adds(node: ast.AST) -> bool:
    """Whether an expression joins its parts, by an operator, a display or a call such as `cat`."""
    match node:
        case ast.BinOp(op=ast.Add() | ast.BitOr()) | ast.Starred():
            return True
        case ast.Dict(keys=keys):
            return None in keys
    return _called(node) in _GROWING


def _is_new(node: ast.expr) -> bool:
    """Whether an expression makes a new container, or an instance of what is named like a class."""
    name = (_called(node) or "").strip("_")
    is_made = name in _CONTAINERS or name[:1].isupper()
    return is_made or isinstance(node, ast.List | ast.Dict | ast.Set | ast.ListComp | ast.DictComp)


def _number(node: ast.expr) -> int | None:
    """The value of a whole number, or of a product, sum or difference of some."""
    match node:
        case ast.Constant(value=int(value)) if type(value) is int:
            return value
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _FOLDED:
            first, second = _number(left), _number(right)
            return None if first is None or second is None else int(_FOLDED[type(sign)](first, second))
    return None


def source_of(code: CodeType) -> list[ast.stmt] | None:
    """The body of a function, class or module, with the line numbers of its file; None if it is unknown.

    Of a lambda expression it is the statement around it. A comprehension is a part of a function.
    """
    for lines in _files(code.co_filename) if code.co_name not in _PARTS_OF_CODE else ():
        with suppress(SyntaxError, ValueError, RecursionError, MemoryError):
            body = _parsed_from(lines, code)
            if body is not None:
                return body
    return None


def _parsed_from(lines: list[str], code: CodeType) -> list[ast.stmt] | None:
    used = {line for one in nested_code(code) for _, _, line in one.co_lines() if line}
    named = code.co_name == "<lambda>" or not code.co_name.startswith("<")
    first = code.co_firstlineno if named else min(used, default=0)
    if not 0 < first <= max(used, default=0) <= len(lines):
        return None
    # What is around it gives it the same free variables.
    outside = f"def _({', '.join(code.co_freevars)}):\n" if code.co_freevars else "class _:\n"
    header = outside if lines[first - 1][:1].isspace() else ""
    before = first - 1 - bool(header)
    flags = code.co_flags & __future__.annotations.compiler_flag | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    for end in range(max(used), min(max(used) + _MOST_ENDS, len(lines) + 1)):
        text = header + "".join(lines[first - 1 : end])
        if len(text) > _MOST_CHARACTERS:
            return None
        with suppress(SyntaxError), _without_warnings():  # the text may end within a statement
            compiled = compile(text, _NAME, "exec", flags, dont_inherit=True)
            if not any(_is_same(one, code, before) for one in nested_code(compiled)):
                return None
            body: Any = ast.parse("\n" * before + text, _NAME).body
            body = body[0].body if header else body
            return list(body if code.co_name.startswith("<") else body[0].body)
    return None


def _is_same(compiled: CodeType, code: CodeType, before: int) -> bool:
    """Whether two code objects have the same lines and name; all names in angle brackets count as one."""
    compiled_lines, lines = ({line for *_, line in one.co_lines() if line} for one in (compiled, code))
    names = {one.co_name.startswith("<") or one.co_name for one in (compiled, code)}
    return {before + line for line in compiled_lines} == lines and len(names) == 1


@contextmanager
def _without_warnings() -> Iterator[None]:
    """Suppress the compiler's warnings about the program's source, and no others."""
    filters: Any = warnings.filters
    filters.insert(0, _NO_WARNINGS)
    try:
        yield
    finally:
        with suppress(ValueError):
            filters.remove(_NO_WARNINGS)


def _files(file: str) -> Iterator[list[str]]:
    with suppress(OSError, SyntaxError, ValueError, LookupError):
        status = os.stat(file)
        yield _lines_of(file, status.st_mtime_ns, status.st_size)
    entry = linecache.cache.get(file)
    if type(entry) is tuple and len(entry) == 4:  # what was typed, as in a cell of a notebook
        yield entry[2]


@lru_cache(maxsize=4)
def _lines_of(file: str, changed: int, size: int) -> list[str]:
    content = io.BytesIO(read_bytes(file, most=_MOST_BYTES, any_owner=True))
    encoding, _ = tokenize.detect_encoding(content.readline)
    content.seek(0)
    return io.TextIOWrapper(content, encoding).readlines()
