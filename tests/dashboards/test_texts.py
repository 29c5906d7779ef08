"""Every number in a text of a page is one that holds, and every word of a verdict is one of the contract."""

import re

import pytest

from heapwatch.analysis.limits import MEMORY_SHARES
from heapwatch.analysis.verdict import WORDS
from heapwatch_dashboards import promql
from heapwatch_dashboards.__main__ import ROOT
from heapwatch_dashboards.colors import CODES, VERDICTS
from tests.dashboards.documents import DOCUMENTS, Json, panels

RULES = "\n".join(file.read_text() for file in (ROOT / "prometheus" / "rules").glob("*.yml"))
OF_ALERTS = {"over a limit", "down or stalled"}

# A number as it is written, and what it is taken from.
SOURCES = {
    f"below {100 * MEMORY_SHARES['warning']:g} %": MEMORY_SHARES["warning"] == 0.85,
    "3 days": promql._SOON == 3 * 86400,
    "above 20 % for ten minutes": "> 0.2 * max_over_time(trainer_gpu_memory_reserved_bytes[10m])" in RULES,
    "100 %": True,  # the whole
    "about 80 °C": True,  # no limit of ours: what makers of GPUs recommend
}


def texts(document: Json) -> str:
    shown = panels(document)
    return "\n".join(
        text
        for panel in shown
        for text in (panel["description"], panel["title"], panel["options"].get("content", ""))
    )


@pytest.mark.parametrize("document", DOCUMENTS.values(), ids=DOCUMENTS)
def test_every_number_has_a_source(document: Json) -> None:
    text = texts(document)
    for known in SOURCES:
        text = text.replace(known, "")
    without_zeros = re.sub(r"(?<![\d.,])0(?![\d.,]\d|\d)", "", text)
    assert re.findall(r"[^.\n]*\d[^.\n]*", without_zeros) == []


@pytest.mark.parametrize("document", DOCUMENTS.values(), ids=DOCUMENTS)
def test_no_text_speaks_of_defaults(document: Json) -> None:
    assert "default" not in texts(document)


def test_the_sources_say_the_same() -> None:
    assert [written for written, holds in SOURCES.items() if not holds] == []


def test_the_words_of_a_verdict_are_those_of_the_contract() -> None:
    assert CODES.keys() == set(WORDS) | OF_ALERTS
    assert {word for word, _ in VERDICTS.values()} == CODES.keys()


def test_every_word_of_a_verdict_is_explained_in_fleet() -> None:
    (reading,) = (one for one in panels(DOCUMENTS["heapwatch-fleet"]) if one["type"] == "text")
    assert set(re.findall(r"\*\*(.+?)\*\*", reading["options"]["content"])) == CODES.keys()
