"""The first code in an entered process, sent as text because the process has not imported this package.

It runs in a thread of its own, perhaps long after it was sent, perhaps in a child forked meanwhile. It raises
nothing, and does nothing once its sender has ended.
"""

# No imports at module level: they fail in some processes.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

asked: dict[str, object] = globals()["asked"]  # set by the sender
folder: str = globals()["folder"]
packages: list[tuple[str, str]] = globals()["packages"]
until: float = globals()["until"]
finish_by = 0.0  # on the monotonic clock; a fork waits for the imports until then


def main() -> None:
    """Start the work in a thread of the `threading` module, once, and only in the intended process."""
    import os
    import time

    # After the deadline, a folder of this name may belong to another user.
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
    """Whether threads are native; a greenlet would end with this thread."""
    import _thread

    return isinstance(_thread.start_new_thread, type(len))


def has_threading() -> bool:
    """Whether `threading` is imported; before Python 3.13 the main thread has to be the first to do that.

    A pending call makes the main thread import it, as in `heapwatch.runtime.owned_reads`. If a signal handler
    raises meanwhile, the exception goes to the program, as it would without Heapwatch.
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
    api.Py_IncRef(ctypes.py_object(call))  # never released: the interpreter may call it much later
    api.Py_AddPendingCall(ctypes.cast(api.PyObject_IsTrue, ctypes.c_void_p), ctypes.py_object(call))
    deadline = time.monotonic() + 3
    while not state["done"] and time.monotonic() < deadline:
        time.sleep(0.01)
    state["wanted"] = False
    return state["done"]


def settle() -> None:
    """Wait for the imports of this code before the program forks or ends.

    Otherwise the child, or the end of the interpreter, would wait for ever for the import lock of a thread
    that no longer runs.
    """
    import time

    while time.monotonic() < finish_by:
        time.sleep(0.005)


def in_pairs(register: "Any") -> "Any":
    """`os.register_at_fork` for modules that are imported while a fork waits in `settle`.

    For that fork, the interpreter calls the functions registered for after it, but not those for before it.
    """

    def register_pair(*, before: "Any" = None, after_in_parent: "Any" = None, **in_child: "Any") -> None:
        begun_forks = []

        def before_fork() -> None:
            settle()  # the last function registered runs first, and may take a lock that an import needs
            if before is not None:
                before()
            begun_forks.append(1)

        def after_fork() -> None:
            if begun_forks:
                begun_forks.pop()
                if after_in_parent is not None:
                    after_in_parent()

        register(before=before_fork, after_in_parent=after_fork, **in_child)

    return register_pair


def work() -> None:
    """Execute the request, unless the sender has ended meanwhile."""
    import atexit
    import os

    global finish_by
    register = os.register_at_fork
    os.register_at_fork = in_pairs(register)
    try:
        for name, package_folder in packages:
            load(name, package_folder)
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
    """Write the answer; return False if the sender no longer waits."""
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


def load(name: str, package_folder: str) -> None:
    """Import a package from its folder, unless the process has one of this name; `sys.path` stays."""
    import importlib.util
    import os
    import sys
    from importlib import _bootstrap as imports

    # The locks of `import` itself: the program or another command may import at the same time.
    with imports._ModuleLockManager(name):  # type: ignore[attr-defined]
        if name in sys.modules or (name != "heapwatch" and importlib.util.find_spec(name)):
            return
        spec = importlib.util.spec_from_file_location(
            name, os.path.join(package_folder, "__init__.py"), submodule_search_locations=[package_folder]
        )
        imports._load_unlocked(spec)  # type: ignore[attr-defined]


main()
