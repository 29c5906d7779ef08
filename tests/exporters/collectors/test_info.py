from datetime import datetime

import psutil

from heapwatch.collectors.info import InfoCollector
from heapwatch.runtime.labels import machine


def test_the_start_is_that_of_the_process():
    started = datetime.fromtimestamp(psutil.Process().create_time())
    (info, _) = InfoCollector("ppo", "sb3", "7").collect()
    assert info.samples[0].labels["started"] == f"{started:%m-%d %H:%M}"


def test_names_and_machine_are_labels_of_constant_ones():
    samples = [s for family in InfoCollector("ppo", "sb3", "7").collect() for s in family.samples]
    assert [(sample.name, sample.value) for sample in samples] == [
        ("trainer_info", 1),
        ("trainer_machine_info", 1),
    ]
    labels = samples[0].labels
    assert labels.pop("started")
    assert labels == {
        "trainer": "ppo",
        "framework": "sb3",
        "run": "7",
        "rank": "",
        "world_size": "",
    }
    assert samples[1].labels == {"machine": machine()}
