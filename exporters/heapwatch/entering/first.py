"""The first code in an entered process. It is sent as text: nothing of this package is there yet.

It runs in the main thread, between two byte codes of the program, and only starts a thread. An error that it
let out would be raised in the program.
"""

from __future__ import annotations

from typing import Any

asked: dict[str, Any] = globals()["asked"]  # given by the sender


def main() -> None:
    """Start the work in a thread of its own, once, and in the process that was meant."""
    import os

    # A child that was forked before this ran has it from its parent. Without the folder its sender is gone.
    if os.getpid() != asked["pid"] or not os.path.isdir(asked["folder"]):
        return
    try:
        os.mkdir(os.path.join(asked["folder"], "taken"))
    except OSError:  # it ran already
        return
    import _thread
    import sys

    # The first thread that imports this module is the main one to it.
    if "threading" not in sys.modules and sys.platform == "linux" and _thread.get_native_id() != os.getpid():
        write({"error": "waits outside of Python in its only thread: nothing can grow in it meanwhile"})
        return
    import threading

    def start() -> None:
        # Not in the main thread: it may hold the lock that this takes.
        threading.Thread(target=work, name="heapwatch-enter", daemon=True).start()

    _thread.start_new_thread(start, ())


def work() -> None:
    """Do what was asked, unless the sender is gone meanwhile."""
    import os

    try:
        for name, folder in asked["packages"]:
            load(name, folder)
        from heapwatch.entering.inside import answer_to

        if not os.path.isdir(asked["folder"]):
            return
        result = answer_to(asked)
        if not write(result) and result.get("already") is False:
            answer_to({**asked, "action": "leave"})
    except BaseException as error:
        write({"error": f"cannot start Heapwatch: {type(error).__name__}: {error}"})


def write(result: dict[str, Any]) -> bool:
    """Write the answer; False where the sender waits no longer."""
    import json
    import os

    path = os.path.join(asked["folder"], "answer.json")
    try:
        with open(f"{path}.part", "w") as stream:
            json.dump(result, stream)
        os.replace(f"{path}.part", path)
    except OSError:
        return False
    return True


def load(name: str, folder: str) -> None:
    """Import a package from its folder unless the process has one of this name; its path stays as it is."""
    import importlib.util
    import os
    import sys
    from importlib import _bootstrap

    imports: Any = _bootstrap
    # The locks of `import` itself: another command may enter, and the program import, at the same time.
    with imports._ModuleLockManager(name):
        if name in sys.modules or (name != "heapwatch" and importlib.util.find_spec(name)):
            return
        spec = importlib.util.spec_from_file_location(
            name, os.path.join(folder, "__init__.py"), submodule_search_locations=[folder]
        )
        imports._load_unlocked(spec)


try:
    main()
except BaseException as _error:
    _at = _error.__traceback__
    while _at is not None and _at.tb_next is not None:
        _at = _at.tb_next
    if _at is not None and _at.tb_frame.f_globals is not globals():
        # Raised by a handler of a signal that came just now: it goes to the program.
        import _thread
        import ctypes

        ctypes.pythonapi.PyThreadState_SetAsyncExc(
            ctypes.c_ulong(_thread.get_ident()), ctypes.py_object(type(_error))
        )
