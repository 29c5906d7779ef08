"""The first code in an entered process. It is sent as text: nothing of this package is there yet.

It runs in a thread of its own, perhaps long after it was sent, and in a child that was forked meanwhile. It
raises nothing, and does nothing once its sender is gone.
"""

# Nothing is imported out here: not every process can.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

asked: dict[str, object] = globals()["asked"]  # given by the sender
folder: str = globals()["folder"]
packages: list[tuple[str, str]] = globals()["packages"]
until: float = globals()["until"]
finish_by = 0.0  # by the monotonic clock; until then a fork waits for the imports


def main() -> None:
    """Start the work in a thread of the `threading` module, once, and in the process that was meant."""
    import os
    import time

    # A folder of this name that is made later is another user's.
    if os.getpid() != asked["pid"] or time.time() > until or not os.path.isdir(folder):
        return
    try:
        os.mkdir(os.path.join(folder, "taken"))
    except OSError:  # it ran already
        return
    try:
        if not has_native_threads():
            write({"error": "replaces the threads of Python, as gevent does, and cannot be entered"})
            return
        if not has_threading():
            write({"error": "waits outside of Python in its only thread: nothing can grow in it meanwhile"})
            return
        import threading
    except ImportError:
        write({"error": "cannot import the modules of its own Python"})
        return
    import sys

    global finish_by
    if "heapwatch.entering.agent" not in sys.modules:  # otherwise all is imported
        import atexit

        finish_by = time.monotonic() + 60  # a loaded machine may need that long
        os.register_at_fork(before=settle)
        atexit.register(settle)
    try:
        threading.Thread(target=work, name="heapwatch-enter", daemon=True).start()
    except RuntimeError as error:
        finish_by = 0.0
        write({"error": f"starts no thread: {error}"})


def has_native_threads() -> bool:
    """Whether a thread that is started is one: a greenlet would end with this thread."""
    import _thread

    return isinstance(_thread.start_new_thread, type(len))


def has_threading() -> bool:
    """Whether `threading` is imported; before Python 3.13 the main thread has to be the first to do that.

    The main thread is asked to by a pending call, as in `heapwatch.runtime.owned_reads`. An exception of a
    signal handler that comes meanwhile is raised in the program, as it would have been anyway.
    """
    import sys

    if "threading" in sys.modules or sys.version_info >= (3, 13):
        return True
    import ctypes
    import time

    state = {"wanted": True, "done": False}

    class Import:
        def __bool__(self) -> bool:
            try:
                if state["wanted"]:
                    import threading  # noqa: F401
            except (ImportError, MemoryError, RecursionError):
                pass
            state["done"] = True
            return False

    call = Import()
    api = ctypes.pythonapi
    api.Py_IncRef(ctypes.py_object(call))  # for ever: it may be called in a day
    api.Py_AddPendingCall(ctypes.cast(api.PyObject_IsTrue, ctypes.c_void_p), ctypes.py_object(call))
    end = time.monotonic() + 3
    while not state["done"] and time.monotonic() < end:
        time.sleep(0.01)
    state["wanted"] = False
    return state["done"]


def settle() -> None:
    """Wait until nothing is imported here any more, before the program forks or ends.

    Otherwise a child, or the end of the interpreter, would wait for ever for a module that a thread has begun
    to import which is not there.
    """
    import time

    while time.monotonic() < finish_by:
        time.sleep(0.005)


def in_pairs(register: "Any") -> "Any":
    """`os.register_at_fork` for modules that are imported while a fork waits in `settle`.

    The interpreter calls what they register for after that fork, and not what they register for before it.
    """

    def register_pair(*, before: "Any" = None, after_in_parent: "Any" = None, **in_child: "Any") -> None:
        begun = []

        def first() -> None:
            settle()  # what was registered last is called first, and may take a lock that an import needs
            if before is not None:
                before()
            begun.append(1)

        def last() -> None:
            if begun:
                begun.pop()
                if after_in_parent is not None:
                    after_in_parent()

        register(before=first, after_in_parent=last, **in_child)

    return register_pair


def work() -> None:
    """Do what was asked, unless the sender is gone meanwhile."""
    import atexit
    import os

    global finish_by
    register = os.register_at_fork
    os.register_at_fork = in_pairs(register)
    try:
        for name, place in packages:
            load(name, place)
        from heapwatch.entering.agent import answer_to

        os.register_at_fork = register
        if not os.path.isdir(folder):
            return
        result = answer_to(asked)
        if not write(result) and result.get("already") is False:
            answer_to({**asked, "action": "leave"})
    except BaseException as error:
        write({"error": f"cannot start Heapwatch: {type(error).__name__}: {error}"})
    finally:
        os.register_at_fork = register
        finish_by = 0.0
        atexit.unregister(settle)


def write(result: dict[str, object]) -> bool:
    """Write the answer; False where the sender waits no longer."""
    import os

    path = os.path.join(folder, "answer.json")
    try:
        import json

        with open(f"{path}.part", "w") as stream:
            stream.write(json.dumps(result))
        os.replace(f"{path}.part", path)
    except (OSError, ImportError):
        try:  # noqa: SIM105
            os.mkdir(os.path.join(folder, "unable"))
        except OSError:
            pass
        return False
    return True


def load(name: str, place: str) -> None:
    """Import a package from its folder unless the process has one of this name; its path stays as it is."""
    import importlib.util
    import os
    import sys
    from importlib import _bootstrap as imports

    # The locks of `import` itself: another command may enter, and the program import, at the same time.
    with imports._ModuleLockManager(name):  # type: ignore[attr-defined]
        if name in sys.modules or (name != "heapwatch" and importlib.util.find_spec(name)):
            return
        spec = importlib.util.spec_from_file_location(
            name, os.path.join(place, "__init__.py"), submodule_search_locations=[place]
        )
        imports._load_unlocked(spec)  # type: ignore[attr-defined]


main()
