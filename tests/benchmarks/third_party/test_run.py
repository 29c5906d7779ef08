"""What is read from a trainer's output and log."""

from __future__ import annotations

from benchmarks.third_party.run import first_leak, tracebacks

OUTPUT = """\
step 1
Traceback (most recent call last):
  File "train.py", line 3, in <module>
    main()
heapwatch.http.server.PortTaken: [Errno 98] port 7777 is taken
[rank1]: Traceback (most recent call last):
[rank1]:   File "train.py", line 19, in <module>
[rank1]: ValueError: no
an Error: in the text of the trainer
"""


def test_tracebacks_are_reported_by_their_last_line() -> None:
    assert tracebacks(OUTPUT) == [
        "heapwatch.http.server.PortTaken: [Errno 98] port 7777 is taken",
        "ValueError: no",
    ]
    assert tracebacks("all is well\n") == []


def test_an_explanation_names_its_first_leak() -> None:
    steady = {"path": "agent.buffer", "type": "list", "holders": [], "is_leak": False}
    leak = {"path": "agent.history", "type": "list", "holders": ["Agent"], "is_leak": True}
    assert first_leak({"findings": []}) is None
    assert first_leak({"findings": [steady]}) is None
    assert first_leak({"findings": [steady, leak]}) == 'agent.history list ["Agent"]'
