"""No dashboard makes a mistake that Grafana's front end would show."""

import pytest

from tests.dashboards import grafana_rules as rules
from tests.dashboards.documents import DOCUMENTS, Json


@pytest.mark.parametrize("rule", rules.RULES, ids=lambda rule: rule.__name__)
@pytest.mark.parametrize("document", DOCUMENTS.values(), ids=DOCUMENTS)
def test_the_dashboard_makes_no_mistake(rule: rules.Rule, document: Json) -> None:
    assert list(rule(document)) == []
