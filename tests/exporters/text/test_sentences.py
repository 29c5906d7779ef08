import pytest

from heapwatch.text.sentences import memory_ends, memory_grows


@pytest.mark.parametrize(
    ("per_minute", "on_gpu", "text"),
    [
        (999, 0, ""),
        (2e9, 0, "Memory grows by 2 GB/min."),
        (2e9, 5e8, "Memory grows by 2 GB/min, 500 MB/min of it on GPUs."),
        (2e9, 2e9, "GPU memory grows by 2 GB/min."),
    ],
)
def test_growth_says_where_it_is(per_minute, on_gpu, text):
    assert memory_grows(per_minute, on_gpu) == text


def test_the_end_of_memory_is_a_range():
    assert memory_ends(2400, 3600) == "Memory ends in 40 to 60 min at this rate."
    assert memory_ends(3600, 3600, on_gpu=True) == "GPU memory ends in 60 min at this rate."
