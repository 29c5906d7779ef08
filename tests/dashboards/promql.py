"""Just enough of PromQL's grammar to name the series that an expression reads."""

import re
from functools import cache
from typing import NamedTuple

KEYWORDS = {"and", "or", "unless", "bool", "offset", "inf", "nan"}
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_LABEL_LIST = re.compile(r"\b(by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)")
_SELECTOR = re.compile(r"([a-zA-Z_:][\w:]*)(\{[^}]*\})?(\[[^\]]*\])?(?![\w:]|\s*\()")
_FUNCTION_BEFORE = re.compile(r"(\w+)\s*\($")


class Selector(NamedTuple):
    """One selector: `function` is what it is given to directly, `range` what stands in brackets."""

    metric: str
    matchers: str
    range: str
    function: str


@cache
def selectors(expression: str) -> tuple[Selector, ...]:
    """Every series selector of the expression."""
    text = _LABEL_LIST.sub(lambda match: " " * len(match.group()), expression)
    masked = _STRING.sub(lambda match: '"' + "." * (len(match.group()) - 2) + '"', text)
    found = []
    for match in _SELECTOR.finditer(masked):
        metric, matchers, window = match.groups()
        before = masked[: match.start()]
        if metric in KEYWORDS or metric[0].isdigit() or _inside(before):
            continue
        function = _FUNCTION_BEFORE.search(before[-200:])
        shown = text[match.start(2) : match.end(2)] if matchers else ""
        found.append(Selector(metric, shown, (window or "")[1:-1], function.group(1) if function else ""))
    return tuple(found)


def _inside(before: str) -> bool:
    """Whether what follows `before` is inside braces, brackets or a number's unit."""
    return (
        before.count("{") > before.count("}")
        or before.count("[") > before.count("]")
        or before[-1:].isdigit()
        or before[-1:] == "$"
    )
