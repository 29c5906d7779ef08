import random

import pytest

from heapwatch.analysis.verdicts import judge_count, judge_items, judge_memory, judge_size

MB = 1e6


def series(*levels, start=0):
    return [(float(cycle), float(level)) for cycle, level in enumerate(levels, start)]


def shaken(levels, by, seed=1):
    luck = random.Random(seed)
    return series(*(level + luck.gauss(0, by) for level in levels))


# Live objects of a class


def test_environments_made_anew_in_every_evaluation_leak():
    judged = judge_count(series(2, 18, 34, 50, 66), "generation")
    assert (judged.verdict, judged.per_cycle, judged.since) == ("leak", 16, 1)
    assert judged.reason == "increasing by 16 each generation"


def test_environments_leak_when_they_went_from_2_to_18_once():
    judged = judge_count(series(2, 18, 18, 18, 18, 18), "generation")
    assert (judged.verdict, judged.change, judged.since) == ("leak", 16, 1)
    assert judged.reason == "16 more are kept since generation 1"


def test_one_generation_is_enough_to_name_objects_that_are_kept():
    judged = judge_count(series(2, 18), "generation")
    assert (judged.verdict, judged.since) == ("leak", 1)


def test_a_population_kept_beside_the_new_one_leaks():
    judged = judge_count(series(16, 17, 17, 17, 33, 33, 33, 33), "generation")
    assert (judged.verdict, judged.current, judged.since) == ("leak", 33, 4)


def test_populations_kept_one_after_another_leak():
    judged = judge_count(series(16, 17, 17, 33, 49, 65, 81), "generation")
    assert (judged.verdict, judged.per_cycle, judged.since) == ("leak", 16, 3)


@pytest.mark.parametrize(
    "levels", [(2, 2, 2, 2), (16, 17, 17, 17, 17), (16, 16, 16, 16, 16, 16, 17, 17), (1, 1), (7,), (0, 0, 0)]
)
def test_as_many_as_before_or_the_best_one_beside_them_is_healthy(levels):
    assert judge_count(series(*levels), "generation").verdict == "steady"


def test_a_leak_seen_by_only_two_censuses_is_told_with_what_they_saw():
    judged = judge_count(series(*[2] * 6, *[13] * 29, *[132] * 5), "generation")
    assert (judged.verdict, judged.since) == ("leak", 6)
    assert judged.reason == "130 more are kept since generation 6"


def test_a_leak_that_began_late_leaks():
    judged = judge_count(series(*[2] * 10, 81, 81, 133, 161, 189, 214), "generation")
    assert (judged.verdict, judged.since) == ("leak", 10)


def test_one_more_each_generation_leaks():
    judged = judge_count(series(*range(16, 26)), "generation")
    assert (judged.verdict, judged.per_cycle) == ("leak", 1)


def test_tensors_that_are_back_after_training_are_steady():
    """Training is caught in the middle now and then, the last time too."""
    judged = judge_count(series(567, 567, 1234, 570, 567, 1234, 567, 568, 567, 1234), "generation")
    assert judged.verdict == "steady"
    assert judged.reason == "back at 567 each generation"


def test_tensors_that_training_keeps_leak():
    judged = judge_count(series(567, 891, 2400, 3900, 5400, 6900, 8400), "generation")
    assert judged.verdict == "leak"
    assert judged.per_cycle == pytest.approx(1500, rel=0.1)


def test_optimizers_made_in_the_first_generation_are_a_warm_up():
    assert judge_count(series(567, *[891] * 9), "generation").verdict == "warm-up"


def test_arrays_of_a_filling_buffer_are_explained():
    arrays = series(1234, 1456, 1678, 1900, 2122, 2344)
    stored = series(0, 111, 222, 333, 444, 555)
    judged = judge_count(arrays, "generation", stored)
    assert judged.verdict == "filling"
    assert judged.reason == "about 2.0 for each item that the buffers took"


def test_arrays_beyond_what_a_buffer_took_leak():
    arrays = series(1234, 2234, 3234, 4234, 5234, 6234)
    assert judge_count(arrays, "generation", series(0, 10, 20, 30, 40, 50)).verdict == "leak"
    assert judge_count(arrays, "generation", series(*[100] * 6)).verdict == "leak"


def test_a_buffer_does_not_explain_a_few_tensors():
    tensors = series(272, 276, 280, 284, 288, 292, 296, 300, 304)
    assert judge_count(tensors, "generation", series(*range(0, 900, 100))).verdict == "leak"


def test_a_buffer_may_fill_with_objects_of_which_there_were_few():
    tensors = series(16, 116, 216, 316, 416, 516)
    judged = judge_count(tensors, "episode", series(0, 100, 200, 300, 400, 500))
    assert (judged.verdict, judged.reason) == (
        "filling",
        "about 1.0 for each item that the buffers took",
    )


def test_a_filling_buffer_does_not_excuse_environments():
    stored = series(*range(0, 600, 100))
    assert judge_count(series(2, 18, 34, 50, 66, 82), "generation", stored).verdict == "leak"


def test_a_store_that_fills_to_its_bound_has_levelled_off():
    assert judge_count(series(0, 1, 2, 3, 4, 5, 5, 5, 5, 5, 5, 5), "epoch").verdict == "warm-up"


def test_a_leak_seen_by_a_census_in_every_third_generation_is_found():
    judged = judge_count(series(2, 2, 2, 50, 50, 50, 98, 98, 98, 146, 146, 146), "generation")
    assert judged.verdict == "leak"
    assert judged.per_cycle == pytest.approx(16, rel=0.2)


@pytest.mark.parametrize("seed", range(30))
def test_a_count_that_varies_is_steady(seed):
    assert judge_count(shaken([5000] * 40, by=60, seed=seed), "epoch").verdict == "steady"


# Bodies, entities and the items of lists


def test_a_list_without_a_bound_leaks_and_one_with_a_bound_fills():
    rises = series(*(40 * episode for episode in range(20)))
    judged = judge_items(rises, "episode")
    assert (judged.verdict, judged.per_cycle, judged.since) == ("leak", 40, 1)
    assert judged.reason == "increasing by 40 each episode"
    filling = judge_items(rises, "episode", 1000)
    assert (filling.verdict, filling.reason) == ("filling", "within its bound of 1000")


def test_a_list_past_its_bound_leaks_since_it_passed_it():
    judged = judge_items(series(0, 500, 1000, 1000, 1050, 1500), "episode", 1000)
    assert (judged.verdict, judged.since) == ("leak", 5)
    assert judged.reason == "past its bound of 1000"


def test_a_few_cycles_do_not_tell_a_leak_of_items_from_a_start():
    assert judge_items(series(0, 40, 80, 120), "episode").verdict == "growing"


@pytest.mark.parametrize("seed", range(30))
def test_a_population_that_comes_and_goes_is_steady(seed):
    assert judge_items(shaken([50] * 40, by=6, seed=seed), "episode").verdict == "steady"


def test_a_world_that_is_filled_once_is_a_warm_up():
    assert judge_items(series(0, 200, 380, *[400] * 12), "episode").verdict == "warm-up"


# Sizes of named objects


def test_a_size_that_grows_by_more_than_5_mb_an_epoch_leaks():
    judged = judge_size(series(*(700 * MB + 6 * MB * epoch for epoch in range(50))), "epoch")
    assert (judged.verdict, judged.per_cycle) == ("leak", 6 * MB)
    assert judged.reason == "over its limit of 5 MB/epoch"


def test_the_limit_of_a_size_is_the_trainers():
    grows = series(*(700 * MB + 6 * MB * epoch for epoch in range(50)))
    assert judge_size(grows, "epoch", 7 * MB).verdict == "growing"
    assert judge_size(series(*(MB + 12e3 * epoch for epoch in range(100))), "epoch", 10e3).verdict == "leak"


def test_slow_growth_is_no_leak_but_is_told():
    judged = judge_size(series(*(MB + 12e3 * epoch for epoch in range(100))), "epoch")
    assert (judged.verdict, judged.per_cycle) == ("growing", pytest.approx(12e3))


def test_weights_are_steady_and_an_optimizer_is_a_warm_up():
    assert judge_size(series(*[45.23 * MB] * 20), "epoch").verdict == "steady"
    assert judge_size(series(0.1 * MB, *[90 * MB] * 20), "epoch").verdict == "warm-up"


# Memory


def test_a_filling_buffer_explains_memory():
    filled = [min(generation, 40) * 500 * MB for generation in range(21)]
    resident = [4e9 + 1.1 * nbytes for nbytes in filled]
    judged = judge_memory(series(*resident), series(*filled), "generation")
    assert judged.verdict == "filling"
    assert judged.reason == "buffers that fill take 500.0 of 550.0 MB/generation"


def test_a_buffer_that_is_full_has_levelled_off():
    filled = [min(generation, 7) * 500 * MB for generation in range(26)]
    assert judge_memory(
        shaken([4e9 + n for n in filled], 20 * MB), series(*filled), "generation"
    ).verdict == ("warm-up")


def test_a_leak_behind_a_filling_buffer_is_found_once_the_buffer_is_small_beside_it():
    filled = [min(generation, 40) * 50 * MB for generation in range(21)]
    leaked = [max(0, generation - 8) * 700 * MB for generation in range(21)]
    resident = shaken([4e9 + a + b for a, b in zip(filled, leaked, strict=True)], 5 * MB)
    judged = judge_memory(resident, series(*filled), "generation")
    assert (judged.verdict, judged.since) == ("leak", 9)
    assert judged.per_cycle == pytest.approx(700 * MB, rel=0.05)


def test_memory_of_a_leak_from_the_first_generation_on():
    levels = [1e9 + 7e9 * generation for generation in range(8)]
    judged = judge_memory(series(*levels), series(*[0] * 8), "generation")
    assert (judged.verdict, judged.per_cycle, judged.since) == ("leak", 7e9, 1)


def test_few_generations_do_not_tell_a_leak_of_memory_from_a_warm_up():
    judged = judge_memory(series(4.2e9, 8.5e9, 9.1e9, 9.5e9), series(*[0] * 4), "generation")
    assert judged.verdict in ("growing", "warm-up")
    judged = judge_memory(series(1e9, 2e9, 3e9), series(*[0] * 3), "generation")
    assert judged.verdict == "growing"


def test_a_limit_of_growth_that_the_trainer_declares_is_kept():
    levels = series(*(1e9 + 30 * MB * epoch for epoch in range(20)))
    assert judge_memory(levels, series(*[0] * 20), "epoch", 40 * MB).verdict == "growing"
    assert judge_memory(levels, series(*[0] * 20), "epoch", 20 * MB).verdict == "leak"


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("cycles", [12, 60])
def test_a_stable_run_is_steady(seed, cycles):
    resident = shaken([1e9] * cycles, by=15 * MB, seed=seed)
    assert judge_memory(resident, series(*[0] * cycles), "epoch").verdict in ("steady", "warm-up")


@pytest.mark.parametrize("seed", range(30))
def test_five_epochs_are_never_enough_for_a_leak_of_memory(seed):
    resident = shaken([1e9] * 5, by=15 * MB, seed=seed)
    assert judge_memory(resident, series(*[0] * 5), "epoch").verdict != "leak"


@pytest.mark.parametrize("seed", range(30))
def test_a_sawtooth_is_no_leak(seed):
    resident = shaken([1e9 + (epoch % 6) * 90 * MB for epoch in range(40)], by=15 * MB, seed=seed)
    assert judge_memory(resident, series(*[0] * 40), "epoch").verdict in ("steady", "warm-up")


def bodies(*, spike=None, fell_to=155.0, rose_to=330.0, cycles=60):
    """Bodies of a world that leaks: a spike at the start, then a rise."""
    leaking = [fell_to + (rose_to - fell_to) * cycle / cycles for cycle in range(cycles)]
    return shaken(([spike] if spike else []) + leaking, by=4)


@pytest.mark.parametrize("spike", [None, 250, 400, 5000])
def test_a_spike_at_the_start_does_not_hide_bodies_that_leak(spike):
    judged = judge_items(bodies(spike=spike), "minute")
    assert judged.verdict == "leak"
    assert judged.baseline < 175


def test_a_spike_at_the_start_of_a_level_that_stays_is_no_rise():
    assert judge_items(shaken([400] + [155] * 60, by=4), "minute").verdict == "steady"
    assert judge_size(series(400 * MB, *[155 * MB] * 20), "generation").verdict == "steady"


def test_a_spike_at_the_start_does_not_hide_a_size_that_grows():
    judged = judge_size(series(900 * MB, *range(int(100 * MB), int(900 * MB), int(20 * MB))), "generation")
    assert judged.verdict == "leak"


@pytest.mark.parametrize("spike", [1.2e9, 3e9])
def test_a_spike_at_the_start_does_not_hide_memory_that_grows(spike):
    levels = [spike, *(1e9 + 50 * MB * epoch for epoch in range(20))]
    judged = judge_memory(series(*levels), series(*[0] * 21), "epoch")
    assert (judged.verdict, judged.baseline) == ("leak", 1e9)


def test_a_spike_at_the_start_does_not_hide_objects_that_leak():
    judged = judge_count(series(90, *range(2, 42, 2)), "generation")
    assert (judged.verdict, judged.baseline, judged.per_cycle) == ("leak", 2, 2)
