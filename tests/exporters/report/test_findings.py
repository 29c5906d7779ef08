from dataclasses import replace

import pytest

from heapwatch.explain.findings import Explanation
from heapwatch.judge.component import Component
from heapwatch.judge.trainer import Leak
from heapwatch.recording.points import Buffer, Point, Run
from heapwatch.report.document import finding_lines, headline, sections
from heapwatch.report.findings import analyse
from tests.support.runs import GB, filled, generations


def with_objects(run, count):
    """The run with other counts of objects, given the point."""
    return replace(run, points=tuple(replace(point, objects=count(point)) for point in run.points))


def test_the_documents_environment_leak_is_reported_in_its_words():
    report = analyse(generations(6, environments=16, evaluation=7e9))
    assert finding_lines(report.finding, report.unit) == [
        "Phase: evaluate_population",
        "Growth: +7 GB per generation",
        "TradingEnvironment count: 2 -> 98 (increasing by 16 each generation)",
        "Started at generation 1",
    ]
    assert headline(report) == "leak: TradingEnvironment count: 2 -> 98 (increasing by 16 each generation)"
    assert report.objects["DDPGAgent"].verdict == "healthy"


def test_objects_name_the_phase_where_memory_cannot():
    """Evaluation takes memory that training gives back, and evolution leaks a little."""
    run = generations(8, evaluation=5e9, other=-2.4e9)
    report = analyse(with_objects(run, lambda point: {"DDPGAgent": 17 + 16 * max(0, grown(point))}))
    assert report.finding.phase == "evolve_population"
    assert report.finding.since == 3


def test_a_count_that_is_older_than_a_phase_does_not_name_it():
    """Evaluation leaks, and objects are counted at the end of each other evolution alone."""
    run = generations(12, environments=16, evaluation=4e9, other=1e8)
    counted, objects, points = 0.0, run.points[0].objects, []
    for point in run.points:
        if point.phase == "evolve_population" and point.cycle("generation") % 2:
            counted, objects = point.time, point.objects
        points.append(replace(point, objects=objects, counted_at=dict.fromkeys(objects, counted)))
    report = analyse(Run("erl_trading", tuple(points)))
    assert report.finding.phase == "evaluate_population"
    assert report.objects["TradingEnvironment"].per_cycle == pytest.approx(16)


def grown(point):
    """Generations from the third on whose evolution is over."""
    return point.cycle("generation") - 2 - (point.event == "phase" and point.phase != "evolve_population")


def test_a_filling_buffer_is_no_finding():
    report = analyse(generations(8, evaluation=1.5 * GB, buffers=lambda n: filled(1.5 * GB * n, 20 * GB)))
    assert report.finding is None
    said = "filling: memory grows by 1.5 GB per generation: buffers that fill explain it."
    assert headline(report) == said


def test_a_buffer_past_its_bound_is_a_finding_and_explains_nothing_more():
    """It fills until generation 4, and is rebound to a list in generation 8."""
    run = generations(14, buffers=lambda n: filled(min(n, 4) * GB if n < 8 else (n - 3) * GB, 4 * GB))
    report = analyse(with_objects(run, lambda point: {"Tensor": 200 + 1.1 * point.buffers["replay"].items}))
    assert report.objects["Tensor"].verdict == "growing"
    assert report.current.bounded_bytes == 4 * GB
    assert finding_lines(analyse(run).finding, report.unit) == [
        "replay buffer: 11 GB, past its bound of 4 GB",
        "Started at generation 8",
    ]
    slowly = generations(60, buffers=lambda n: filled((4 + 0.02 * max(0, n - 20)) * GB, 4 * GB))
    assert analyse(slowly).finding.since == 21


@pytest.mark.parametrize("count", range(1, 9))
def test_tensors_of_an_optimizer_that_come_with_the_first_update_are_no_finding(count):
    run = generations(count)
    report = analyse(with_objects(run, lambda point: {"Tensor": 36 if point.time else 12}))
    assert report.finding is None


def test_a_list_that_grows_is_found_beside_objects_that_do_not():
    run = generations(
        12, items=lambda n: {"death events": 70 * n, "birth events": 50 * n, "static bodies": 40}
    )
    points = tuple(replace(point, bounds={"birth events": 1000}) for point in run.points)
    report = analyse(Run("walker", points))
    assert finding_lines(report.finding, report.unit) == [
        "Phase: evaluate_population",
        "death events count: 0 -> 840 (increasing by 70 each generation)",
        "Started at generation 1",
    ]
    assert report.objects["birth events"].verdict == "filling"
    assert report.objects["static bodies"].verdict == "healthy"


@pytest.mark.parametrize(
    ("field", "lists", "found"), [("objects", 11, False), ("objects", 110, True), ("items", 11, True)]
)
def test_thousands_of_a_class_that_become_a_few_percent_more_are_no_finding(field, lists, found):
    """What a trainer declares is a leak also by a few percent."""
    points = [
        Point(
            2.0 * number,
            "cycle",
            GB,
            progress={"generation": number},
            **{field: {"list": 22_192 + lists * number}},
        )
        for number in range(1, 65)
    ]
    assert (analyse(Run("trainer", tuple(points))).finding is not None) == found


@pytest.mark.parametrize(("seconds", "wanted"), [(10.0, "too early"), (20.0, "leak")])
def test_a_rise_is_as_long_as_its_points_where_several_cycles_lie_between_two(seconds, wanted):
    points = [
        Point(seconds * n, "cycle", GB, progress={"episode": 10 * n}, objects={"Env": 2 + 40 * n})
        for n in range(1, 10)
    ]
    assert analyse(Run("trainer", tuple(points))).objects["Env"].verdict == wanted


def test_the_trend_has_a_line_a_generation_and_phase():
    trend = analyse(generations(2, evaluation=4.29e9)).trend
    assert [row.label for row in trend][:3] == [
        "Trainer initialized (baseline)",
        "Gen 1: After evaluate_population",
        "Gen 1: After train_population",
    ]
    assert [row.change_bytes for row in trend][:3] == [None, pytest.approx(4.29e9), 0]
    assert len(trend) == 7
    assert trend[-1].label == "Gen 2: After evolve_population"


def test_the_limit_of_sizes_is_declared_or_5_mb():
    def point(epoch, limits):
        sizes = {"stats": 1e6 + 3e6 * epoch, "policy": 45e6}
        progress = {"epoch": epoch}
        return Point(60.0 * epoch, "cycle", 1e9, progress=progress, sizes=sizes, growth_limits=limits)

    def run(**limits):
        return Run("metta", tuple(point(epoch, limits) for epoch in range(1, 20)))

    declared = run(**{"object_size//epoch": 2e6})
    assert analyse(run()).finding is None
    assert analyse(run()).sizes["stats"].verdict == "growing"
    assert list(analyse(declared).finding.sizes) == ["stats"]
    own = run(**{"object_size//epoch": 2e6, "object_size/stats/epoch": 4e6})
    assert analyse(own).finding is None


def test_an_unfinished_generation_is_not_compared_with_whole_ones():
    """Tensors of a training that is going on."""
    run = generations(8)
    training = Point(9e4, "phase", 9e9, "train_population", progress={"generation": 8}, objects={"Tensor": 9})
    whole = with_objects(run, lambda _: {"Tensor": 2})
    report = analyse(replace(whole, points=(*whole.points, training)))
    assert (report.objects["Tensor"].verdict, report.objects["Tensor"].current) == ("healthy", 2)
    assert report.finding is None


def test_a_trainer_that_counts_nothing_is_judged_by_the_minute():
    points = tuple(Point(15.0 * n, "sample", 1e9 + 5e6 * n) for n in range(160))
    report = analyse(Run("walker", points))
    assert report.unit == "minute"
    assert report.memory.verdict == "leak"
    assert report.memory.per_cycle == pytest.approx(20e6)


def test_large_objects_are_those_from_the_given_size_on():
    run = generations(2, buffers=lambda n: filled(2345.67e6, 3e9), sizes=lambda n: {"a": 60e6, "b": 1e6})

    def large(*limit):
        titles = {section.title: section.rows for section in sections(analyse(run), 0, *limit)}
        return [name for name, *_ in titles["LARGE OBJECTS"]]

    assert large() == ["replay", "a"]
    assert large(1e5) == ["replay", "a", "b"]


@pytest.mark.parametrize(
    ("tensors", "since"),
    [
        (lambda generation: 59.0 * generation, 1),  # as the buffer fills
        (lambda generation: 177.0 if generation > 3 else 0.0, 4),
    ],
)
def test_graphs_that_the_judge_finds_are_named_with_the_remedy(tensors, since):
    run = generations(
        10,
        buffers=lambda n: {"memory": Buffer(1e4 * tensors(n), tensors(n), 6e6)},
        graphs=lambda n: {"memory": tensors(n)},
    )
    assert analyse(run).finding is None  # without the judge's verdict
    leak = Leak(Component("buffer", "memory"), "graphs", 0.0, tensors(10))
    explanation = Explanation("leak", 600.0, 0.0, 0.0, leaks=(leak,)).as_json()
    finding = analyse(replace(run, explanation=explanation)).finding
    assert finding.graphs == {"memory": run.points[-1].graphs["memory"]}
    assert finding.since == since
    lines = finding_lines(finding, "generation")
    assert any("memory buffer" in line and "autograd graph" in line for line in lines)
    assert "Remedy: store `tensor.detach().cpu()`, or `.item()` for a number" in lines
