"""The explanation that stays at the end of a run."""

import pytest

from heapwatch.explain.conclusion import Conclusion
from heapwatch.explain.findings import Explanation, Finding


@pytest.mark.parametrize(
    ("readings", "concluded"),
    [
        ([(70, 400e6, "leak"), (75, 500e6, "leak"), (78, 90e6, "healthy")], 75),  # freed as it ended
        ([(75, 500e6, "leak"), (78, 90e6, "leak")], 75),  # the rate of what is freed is none
        ([(60, 90e6, "leak"), (65, 80e6, "healthy"), (80, 80e6, "healthy")], 80),  # freed before the end
        # freed before the end, and evaluated rarely
        ([(60, 500e6, "leak"), (62, 80e6, None), (70, 80e6, None), (80, 80e6, "healthy")], 80),
        ([(60, 500e6, "leak"), (65, 510e6, None), (75, 520e6, None), (80, 80e6, "healthy")], 60),
        ([(75, 500e6, "growing"), (78, 500e6, "filling")], 78),  # found to be harmless
        ([(75, 500e6, "leak"), (78, 500e6, "leak")], 78),
        ([(30, 500e6, "too early"), (75, 500e6, "healthy"), (78, 90e6, "healthy")], 75),
        ([(75, 500e6, "too early"), (78, 90e6, "leak")], 78),
        ([(78, 500e6, "leak")], 78),
    ],
)
def test_what_a_program_frees_as_it_ends_does_not_hide_what_it_held(readings, concluded):
    conclusion = Conclusion()
    for time, held, verdict in readings:
        conclusion.read(time, held)
        if verdict:
            conclusion.explained(time, held, Explanation(verdict, time, 0.0, 0.0))
    chosen = conclusion.explanation()
    assert chosen is not None
    assert chosen.seconds == concluded


@pytest.mark.parametrize(("held", "concluded"), [(500e6, "leak"), (80e6, "healthy")])
def test_a_leak_whose_objects_are_gone_stays_as_long_as_the_allocator_keeps_their_memory(held, concluded):
    leak = Finding("container", "trainer.history", "list", 9, 9, 1.0, 30e6, 1.0, is_leak=True)
    conclusion = Conclusion()
    for time, level in ((60, 500e6), (75, held), (80, held), (90, held)):
        conclusion.read(time, level)
    conclusion.explained(60, 500e6, Explanation("leak", 60.0, 30e6, 1.0, (leak,)))
    conclusion.explained(90, held, Explanation("healthy", 90.0, 0.0, 0.0))
    chosen = conclusion.explanation()
    assert chosen is not None
    assert chosen.verdict == concluded
