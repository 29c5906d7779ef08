"""Just enough of PromQL's grammar to name the series that an expression reads."""

import re
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


def selectors(expression: str) -> list[Selector]:
    """Every series selector of the expression."""
    text = _LABEL_LIST.sub(lambda match: " " * len(match.group()), expression)
    found = []
    for match in _SELECTOR.finditer(_without_strings(text)):
        metric, matchers, window = match.groups()
        if metric in KEYWORDS or metric[0].isdigit() or _inside(text, match.start()):
            continue
        before = _FUNCTION_BEFORE.search(text[: match.start()])
        shown = text[match.start(2) : match.end(2)] if matchers else ""
        found.append(Selector(metric, shown, (window or "")[1:-1], before.group(1) if before else ""))
    return found


def _without_strings(text: str) -> str:
    return _STRING.sub(lambda match: '"' + "." * (len(match.group()) - 2) + '"', text)


def _inside(text: str, position: int) -> bool:
    """Whether the position is inside braces, brackets or a number's unit."""
    masked = _without_strings(text)
    before = masked[:position]
    return (
        before.count("{") > before.count("}")
        or before.count("[") > before.count("]")
        or before[-1:].isdigit()
        or before[-1:] == "$"
    )
