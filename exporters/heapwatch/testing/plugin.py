"""The pytest plugin: the marker and the fixture `no_leak`. It loads nothing else until it is used."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

_MARKER = (
    "no_leak(rounds=24, allow=()): run the test in rounds, and fail when something grows with every "
    "round; `allow` names paths that may (`*` matches anything), or bytes a round"
)
Allowed = str | float | Sequence[str | float]
_running = pytest.StashKey[bool]()
_annotations = pytest.StashKey[list[str]]()


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    config.addinivalue_line("markers", _MARKER)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> object | None:
    """Run a marked test in rounds until its growth can be judged."""
    marker = pyfuncitem.get_closest_marker("no_leak")
    if marker is None or pyfuncitem.stash.get(_running, False):
        return None
    pyfuncitem.stash[_running] = True
    try:
        _check(
            lambda: pyfuncitem.ihook.pytest_pyfunc_call(pyfuncitem=pyfuncitem),
            pyfuncitem,
            pyfuncitem.funcargs,
            *_arguments(marker),
        )
    finally:
        del pyfuncitem.stash[_running]
    return True


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """In a job of GitHub Actions, annotate the lines at which something grows."""
    for line in config.stash.get(_annotations, []):
        terminalreporter.write_line(line)


@pytest.fixture
def no_leak(request: pytest.FixtureRequest) -> Callable[..., None]:
    """Return a function: `no_leak(unit, rounds=24, allow=())` runs a unit of work until it can be judged."""
    names: dict[str, Any] = request.node.funcargs

    def check(unit: Callable[[], object], *, rounds: int | None = None, allow: Allowed = ()) -> None:
        __tracebackhide__ = True
        _check(unit, request.node, names, rounds, allow)

    return check


def _arguments(marker: pytest.Mark) -> tuple[int | None, Allowed]:
    """The rounds and the allowed paths that a marker asks for."""

    def no_leak(rounds: int | None = None, allow: Allowed = ()) -> tuple[int | None, Allowed]:
        return rounds, allow

    try:
        return no_leak(*marker.args, **marker.kwargs)
    except TypeError as error:
        text = f"{str(error).rpartition('.')[2]}; allowed: {_MARKER.partition(':')[0]}"
        raise pytest.fail.Exception(text, pytrace=False) from None


def _check(
    unit: Callable[[], object],
    test: pytest.Item,
    names: dict[str, Any],
    rounds: int | None = None,
    allow: Allowed = (),
) -> None:
    __tracebackhide__ = True
    from heapwatch.measure.introspection.roots import Root
    from heapwatch.testing.rounds import ROUNDS, GrowthCheck
    from heapwatch.text.terminal import plain

    def read() -> dict[str, Any]:
        return names

    try:
        check = GrowthCheck(
            rounds=ROUNDS if rounds is None else rounds,
            allow=allow,
            roots=lambda: [Root("", "fixtures", read, namespace=True)],
        )
    except ValueError as error:
        raise pytest.fail.Exception(f"no_leak: {error}", pytrace=False) from None
    found = check.run(unit)
    if found:
        _annotate(test, found)
        lines = "\n".join(f"  {plain(_text_of(growing))}" for growing in found)
        pytest.fail(f"leak: something grows with every one of {check.done} rounds:\n{lines}", pytrace=False)


def _text_of(growing: Any) -> str:
    from heapwatch.text.actions import relative

    site = growing.site
    line = site and f"{relative(site.file)}:{site.line}{site.function and f' in {site.function}'}"
    return str(growing.text("a round", line))


def _annotate(test: pytest.Item, findings: Sequence[Any]) -> None:
    """Keep an annotation for each finding, and add them to the summary of the job."""
    from heapwatch.text.actions import annotation, append_summary, in_actions
    from heapwatch.text.markdown import escaped

    if not in_actions():
        return
    for growing in findings:
        site = growing.site
        file, line = (site.file, site.line) if site else (str(test.path), (test.reportinfo()[1] or 0) + 1)
        annotations = test.config.stash.setdefault(_annotations, [])
        annotations.append(
            annotation("error", f"Heapwatch: leak in {test.name}", _text_of(growing), file, line)
        )
        append_summary(f"- **leak** in `{test.name}`: {escaped(_text_of(growing))}\n")
