"""Results by case, in files beside the cases: the page is made of the last run of each, whenever that was."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from benchmarks.cases.score import Score, Total
from benchmarks.cases.tools.registry import OURS

RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True)
class Result:
    """What was measured of a case.

    Args:
        seconds: how long its script ran.
        scores: by tool.
        library: the one that leaks, with its version.

    """

    seconds: float
    scores: Mapping[str, Score]
    library: str


def keep(folder: Path, case: str, result: Result) -> None:
    """Store a result; what an earlier run measured with other tools stays."""
    folder.mkdir(parents=True, exist_ok=True)
    if before := load(folder, [case]).get(case):
        # The page is about our own tool: how long the others ran later says nothing of it.
        ran = before if OURS in before.scores and OURS not in result.scores else result
        result = replace(ran, scores={**before.scores, **result.scores})
    document = asdict(result)
    document["scores"] = document.pop("scores")  # the longest part is the last
    (folder / f"{case}.json").write_text(json.dumps(document, indent=1) + "\n")


def load(folder: Path, cases: Iterable[str]) -> dict[str, Result]:
    """The results that there are of these cases, by name."""
    found: dict[str, Result] = {}
    for case in cases:
        path = folder / f"{case}.json"
        if not path.exists():
            continue
        document = json.loads(path.read_text())
        document["scores"] = {
            tool: Score(**{**score, "failures": tuple(score["failures"])})
            for tool, score in document["scores"].items()
        }
        found[case] = Result(**document)
    return found


def totals(results: Mapping[str, Result], tools: Iterable[str]) -> dict[str, Total]:
    """The scores of each tool that was run, over the cases that it was run on."""
    found = {
        tool: Total([one.scores[tool] for one in results.values() if tool in one.scores]) for tool in tools
    }
    return {tool: total for tool, total in found.items() if total.scores}
