"""The roots of a program's objects: modules, frames of threads, well-known registries."""

from __future__ import annotations

import sys
import sysconfig
import threading
from collections.abc import Callable, Container, Iterator
from functools import lru_cache
from types import AsyncGeneratorType, CodeType, CoroutineType, FrameType, GeneratorType, ModuleType
from typing import Any, NamedTuple

from heapwatch.measure.introspection.attributes import Gone, attribute_of
from heapwatch.measure.introspection.frames import OPTIMIZED, callers, innermost, locals_of, thread_ids

OWN_THREADS = "heapwatch-"
HOSTED = "multiprocessing.Manager()"
_MOST_FRAMES = 60
_OWN_PACKAGES = (
    "heapwatch", "heapwatch_dashboards", "heapwatch_receiver", "heapwatch_stack", "heapwatch_viewer"
)  # fmt: skip
_OWN_FOLDER = __file__.rpartition("measure")[0]
_LIBRARY = tuple(
    {sysconfig.get_paths()["stdlib"], sysconfig.get_paths()["platstdlib"], sys.prefix + "/lib/python"}
)
# Below them is what started a loop or a process, and calls nothing that runs now.
_STARTING = (
    "/asyncio/base_events.py", "/asyncio/events.py", "/asyncio/runners.py", "/multiprocessing/process.py"
)  # fmt: skip
# What may be suspended, with the attributes for its frame, its code, and what it waits for.
_SUSPENDED = (
    (GeneratorType, "gi_frame", "gi_code", "gi_yieldfrom"),
    (CoroutineType, "cr_frame", "cr_code", "cr_await"),
    (AsyncGeneratorType, "ag_frame", "ag_code", "ag_await"),
)
_NOT_LOOKED_INTO = (_OWN_FOLDER, "<frozen")
_module_dict: Callable[[ModuleType], dict[str, Any]] = vars(ModuleType)["__dict__"].__get__

# Registries of libraries that live as long as the process: module, and a path of plain attributes.
_REGISTRIES = (
    ("weakref", "finalize._registry"),
    ("matplotlib._pylab_helpers", "Gcf.figs"),
    ("logging", "root.handlers"),
    ("logging", "Logger.manager.loggerDict"),
    ("logging", "_handlerList"),
    ("threading", "_active"),
    ("multiprocessing.process", "_children"),
    ("gc", "garbage"),
    ("gc", "callbacks"),
)


class Root(NamedTuple):
    """A starting point of paths: a module's namespace, a frame's locals, a registry.

    Attributes:
        label: the beginning of its paths.
        name: unique among the roots.
        read: returns the present object; raises `Gone`.
        namespace: whether the object is a dict of names.
        frame_code: id of the code of the running function whose local variables it is; None for other roots.
        is_users: whether its names mean something to the user: not those of a library's function or script.

    """

    label: str
    name: str
    read: Callable[[], Any]
    namespace: bool = False
    frame_code: int | None = None
    is_users: bool = True


def user_modules() -> list[str]:
    """Names of the loaded modules that belong neither to the standard library nor to an installed package."""
    modules = sys.modules
    names = list(modules) if type(modules) is dict else []
    return [name for name in names if type(name) is str and is_user_module(name)]


def is_user_module(name: str) -> bool:
    """Whether a module's file is the user's."""
    if name.partition(".")[0] in _OWN_PACKAGES:
        return False
    namespace = module_namespace(name)
    if namespace is None:
        return False
    file = namespace.get("__file__")
    return name == "__main__" or (type(file) is str and is_user_file(file))


@lru_cache(maxsize=20_000)
def is_user_file(file: str) -> bool:
    """Whether a source file belongs neither to the interpreter nor to an installed package."""
    if file.startswith(("<", _OWN_FOLDER)):
        return False
    return "site-packages" not in file and "dist-packages" not in file and not file.startswith(_LIBRARY)


def module_namespace(name: str) -> dict[str, Any] | None:
    """A loaded module's globals; None if there is no such module, or another object under its name."""
    modules = sys.modules
    if type(modules) is not dict:
        return None
    module = modules.get(name)
    return _module_dict(module) if issubclass(type(module), ModuleType) else None  # type: ignore[arg-type]


def module_root(name: str) -> Root:
    """The globals of a module; the label of the main module is empty."""

    def read() -> dict[str, Any]:
        namespace = module_namespace(name)
        if namespace is None:
            raise Gone(name)
        return namespace

    file = (module_namespace(name) or {}).get("__file__")
    is_users = type(file) is not str or is_user_file(file)
    return Root("" if name == "__main__" else name, f"module {name}", read, True, is_users=is_users)


def registry_roots() -> list[Root]:
    """The registries of the standard library and of matplotlib that are in use."""
    modules = sys.modules
    return [_registry(module, path) for module, path in _REGISTRIES if module in modules]


def hosted_root() -> Root:
    """The objects that this process keeps for others, if it is that of a `multiprocessing.Manager`."""

    def read() -> list[Any]:
        try:
            process = (module_namespace("multiprocessing.process") or {})["_current_process"]
            objects = attribute_of(attribute_of(process, "_manager_server"), "id_to_obj")
            return [kept for kept, *_ in list(dict.values(objects))]
        except (LookupError, TypeError):
            raise Gone(HOSTED) from None

    return Root(HOSTED, "hosted", read)


def frame_roots() -> list[Root]:
    """The local variables of the running functions in every thread, without the threads of this package.

    The user's functions come before those of libraries.
    """
    roots: list[tuple[bool, Root]] = []
    listed: set[tuple[int, int]] = set()
    for thread, code, user in _running_functions():
        if (thread, id(code)) not in listed and len(listed) < 4 * _MOST_FRAMES:
            listed.add((thread, id(code)))
            root = _frame(thread, id(code), code.co_name)._replace(is_users=user)
            roots.append((not user, root))
    return [root for _, root in sorted(roots, key=lambda entry: entry[0])]


def running_code() -> list[Any]:
    """Code objects of the running functions and scripts of the user, the outermost first."""
    return [code for _, code, user in _running_functions(modules=True) if user]


def calling_line(codes: Container[int]) -> tuple[str, int, str] | None:
    """File, line and function of the user's code that is calling library functions now.

    Args:
        codes: ids of the code objects of these functions.

    Returns:
        None if no thread is in one of them, or several lines are calling them.

    """
    lines: set[tuple[str, int, str]] = set()
    own_threads = _own_threads()
    for thread in thread_ids():
        in_library = False
        for frame in callers(None if thread in own_threads else innermost(thread)):
            code = frame.f_code
            if in_library and code.co_filename.replace("\\", "/").endswith(_STARTING):
                break
            if in_library and is_user_file(code.co_filename):
                lines.add((code.co_filename, frame.f_lineno, getattr(code, "co_qualname", code.co_name)))
                break
            in_library = in_library or id(code) in codes
    return lines.pop() if len(lines) == 1 else None


def _running_functions(modules: bool = False) -> Iterator[tuple[int, Any, bool]]:
    own_threads = _own_threads()
    for thread in thread_ids():
        chain = list(callers(None if thread in own_threads else innermost(thread)))[-_MOST_FRAMES:]
        while chain:
            code = chain.pop().f_code
            if (modules or code.co_flags & OPTIMIZED) and not code.co_filename.startswith(_NOT_LOOKED_INTO):
                yield thread, code, is_user_file(code.co_filename)


def _own_threads() -> set[int]:
    threads = {threading.get_ident()}
    # Not `threading.enumerate`: it waits for a lock that the program may hold.
    for ident, thread in list(threading._active.items()):  # type: ignore[attr-defined]
        name = attribute_of(thread, "_name")
        if type(name) is str and name.startswith(OWN_THREADS):
            threads.add(ident)
    return threads


def _frame(thread: int, code: int, function: str) -> Root:
    def read() -> dict[str, Any]:
        target = inner_code = called_code = None
        for frame in callers(innermost(thread)):
            if frame.f_trace is not None:
                raise Gone(function)  # a debugger reads and writes the same snapshot of local variables
            if id(frame.f_code) == code:
                target, called_code = frame, inner_code
            inner_code = frame.f_code
        if target is None:
            raise Gone(function)
        return locals_of(target, called_code)

    return Root(f"{function}()", f"frame {thread} {code}", read, namespace=True, frame_code=code)


def suspended_code(obj: Any) -> CodeType | None:
    """The code of a function of the user's that waits as a generator or coroutine; None for anything else."""
    frame, code = _frame_and_code(obj)
    is_named = code is not None and code.co_name.isidentifier() and is_user_file(code.co_filename)
    return code if frame is not None and is_named else None


def suspended_locals(obj: Any) -> dict[str, Any]:
    """The local variables of a generator or coroutine, in a separate dict; empty when it has ended."""
    frame, _ = _frame_and_code(obj)
    return {} if frame is None or frame.f_trace is not None else locals_of(frame, None)


def awaited_by(obj: Any) -> Any:
    """The generator or coroutine that another one waits for; None where it waits for something else."""
    awaited = next((getattr(obj, name) for cls, _, _, name in _SUSPENDED if type(obj) is cls), None)
    return awaited if _frame_and_code(awaited)[0] is not None else None


def _frame_and_code(obj: Any) -> tuple[FrameType | None, CodeType | None]:
    for cls, frame, code, _ in _SUSPENDED:  # compared by identity: hashing a class may run code
        if type(obj) is cls:
            return getattr(obj, frame), getattr(obj, code)
    return None, None


def _registry(module: str, path: str) -> Root:
    def read() -> Any:
        namespace = module_namespace(module)
        first, *rest = path.split(".")
        if namespace is None or first not in namespace:
            raise Gone(path)
        value: Any = namespace[first]
        for name in rest:
            value = getattr(value, name, None)
        if value is None:
            raise Gone(path)
        return value

    return Root(f"{module}.{path}", f"registry {module}.{path}", read)
