import re

from heapwatch.recording.points import Point, Run
from heapwatch.report.document import as_text
from heapwatch.report.findings import analyse
from tests.support.runs import filled, generations

REPORT = analyse(
    generations(
        6,
        environments=16,
        evaluation=7e9,
        buffers=lambda n: filled(2345.67e6, 3e9),
        sizes=lambda n: {"stats": 1e6 + 6e6 * n},
    )
)
CONTROLLING = "\x1b]0;owned\x07\x9b2J\u202e\r\n"


def report_named(name):
    def point(n):
        named = {"objects": {name: 2 + 5 * n}, "sizes": {name: 1e7 * n}}
        return Point(60.0 * n, "cycle", 1e9 + 1e9 * n, progress={"epoch": n}, **named)

    return analyse(Run(name, tuple(map(point, range(1, 9)))))


def test_the_text_has_the_documents_tables():
    lines = as_text(REPORT, 0).splitlines()
    for wanted in (
        r"LEAK FOUND:",
        r"- TradingEnvironment count: 2 -> 98 \(increasing by 16 each generation\)",
        r"RSS \(actual RAM\) +4\.23 GB",
        r"Buffer replay +2\.35 GB of 3 GB",
        r"MEMORY TREND ACROSS GENERATIONS",
        r"Label +RAM +Change",
        r"Trainer initialized \(baseline\) +4\.230 GB +baseline",
        r"Gen 1: After evaluate_population +11\.230 GB +\+7\.000 GB",
        r"Growth +\+42 GB \(\+992\.9%\)",
        r"TradingEnvironment +2 -> 98 \(\+96\) +LEAK: increasing by 16 each generation",
        r"DDPGAgent +16 -> 17 \(\+1\) +healthy",
        r"WARNING: Potential memory leaks detected in: \['stats'\]",
        r"replay +buffer +2\.35 GB +3 GB",
    ):
        assert any(re.fullmatch(wanted, line) for line in lines), wanted
    assert all(line.isascii() for line in lines)


def test_names_control_no_terminal():
    text = as_text(report_named(CONTROLLING), 30)
    assert all(line.isprintable() for line in text.split("\n"))
    assert "\\x1b" in text
