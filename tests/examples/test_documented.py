"""What the documents promise of the examples' own code, tried without a running example.

`make documents-test` tries the rest.
"""

import importlib

import pytest

from examples.metta_ppo.tracking import MemoryTracking

CHECKS = (
    "fire_dqn.methods",
    "fire_dqn.without_graph",
    "metta_ppo.configuration",
    "metta_ppo.named_configuration",
)


@pytest.mark.parametrize("check", CHECKS)
def test_the_examples_own_code_does_what_its_document_says(check):
    module, _, name = check.partition(".")
    # Imported here: it brings the examples with all that they need, and each worker imports this file.
    getattr(importlib.import_module(f"tests.documents.{module}"), name)(None)


@pytest.mark.parametrize(
    "setting",
    ["trainer.memory=1", "trainer.memory_report_interval=often", "trainer.memory_tracking_enabled=1"],
)
def test_a_wrong_override_is_refused(setting):
    with pytest.raises(ValueError, match="memory"):
        MemoryTracking().overridden([setting])
