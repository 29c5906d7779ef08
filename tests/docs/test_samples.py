"""What the pages of the systems show is what the commands print."""

import pytest

from docs.systems.samples import PRINTED, page, written


@pytest.mark.parametrize("name", PRINTED)
def test_samples_are_what_the_commands_print(name):
    assert page(name).read_text(encoding="utf-8") == written(name)
