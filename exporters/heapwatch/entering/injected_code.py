"""The first code in an entered process. It is sent as text: nothing of this package is there yet.

It runs in the main thread, between two byte codes of the program, and only starts a thread. An error that it
let out would be raised in the program.
"""

# Nothing is imported out here: not every process can.
asked: dict[str, object] = globals()["asked"]  # given by the sender
folder: str = globals()["folder"]
packages: list[tuple[str, str]] = globals()["packages"]


def main() -> None:
    """Start the work in a thread of its own, once, and in the process that was meant."""
    import os

    # A child that was forked before this ran has it from its parent. Without the folder its sender is gone.
    if os.getpid() != asked["pid"] or not os.path.isdir(folder):
        return
    try:
        os.mkdir(os.path.join(folder, "taken"))
    except OSError:  # it ran already
        return
    import _thread
    import sys

    # The first thread that imports this module is the main one to it.
    if "threading" not in sys.modules and sys.platform == "linux" and _thread.get_native_id() != os.getpid():
        write({"error": "waits outside of Python in its only thread: nothing can grow in it meanwhile"})
        return
    try:
        import threading
    except ImportError:
        write({"error": "cannot import the modules of its own Python"})
        return

    def start() -> None:
        # Not in the main thread: it may hold the lock that this takes.
        threading.Thread(target=work, name="heapwatch-enter", daemon=True).start()

    _thread.start_new_thread(start, ())


def work() -> None:
    """Do what was asked, unless the sender is gone meanwhile."""
    import os

    try:
        for name, place in packages:
            load(name, place)
        from heapwatch.entering.agent import answer_to

        if not os.path.isdir(folder):
            return
        result = answer_to(asked)
        if not write(result) and result.get("already") is False:
            answer_to({**asked, "action": "leave"})
    except BaseException as error:
        write({"error": f"cannot start Heapwatch: {type(error).__name__}: {error}"})


def write(result: dict[str, object]) -> bool:
    """Write the answer; False where the sender waits no longer."""
    import os

    try:
        import json

        text = json.dumps(result)
    except ImportError:
        text = '{"error": "cannot import the modules of its own Python"}'
    path = os.path.join(folder, "answer.json")
    try:
        with open(f"{path}.part", "w") as stream:
            stream.write(text)
        os.replace(f"{path}.part", path)
    except OSError:
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
