import pytest

from heapwatch_viewer.settings import Settings


@pytest.mark.parametrize(
    ("name", "value"), [("HEAPWATCH_DASHBOARDS_PORT", "0"), ("HEAPWATCH_PROMETHEUS_URL", "127.0.0.1:9090")]
)
def test_a_value_that_cannot_be_used_is_named(name, value):
    with pytest.raises(ValueError, match=f"{name}='{value}'"):
        Settings.from_environment({name: value})
