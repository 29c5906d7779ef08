from heapwatch.http.status import landing_page


def test_names_from_user_data_are_escaped():
    page = landing_page(
        {
            "trainer": {"trainer": "<script>"},
            "entities": {"<img>": 3},
            "sample_age_seconds": {"bodies": 2.5},
            "buffers": {"replay": {"items": 1000, "capacity_items": 2000, "bytes": 5e6}},
        }
    )
    assert "<script>" not in page
    assert "<img>" not in page
    assert "2.5 s" in page
    assert "1,000 of 2,000 items, 5.0 MB" in page


def test_page_says_whether_training_progresses():
    def page(training, idle):
        return landing_page({"training": training, "performance": {"seconds_since_progress": idle}})

    assert "last step was 3.0 s ago" in page("progressing", 3.0)
    assert "no progress for 10 min" in page("stalled", 600.0)
    assert "not reported" in landing_page({})
    assert "stuck &amp; slow" in landing_page({}, problem="stuck & slow")


def test_alerts_show_value_and_limit():
    alert = {
        "severity": "critical",
        "kind": "growth",
        "resource": "bodies",
        "component": "all",
        "value": 15.5,
        "limit": 10,
    }
    assert "15.5 (limit 10 a minute)" in landing_page({"alerts": [alert]})
