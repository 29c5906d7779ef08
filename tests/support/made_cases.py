"""A case that is made up."""

from benchmarks.cases.case import Case


def case(**changed):
    fields = {
        "name": "kept", "thread": "https://github.com/a/b/issues/1", "library": "json",
        "leak": "A list.", "script": "", "fixes": {"a": "b"}, **changed,
    }  # fmt: skip
    return Case(**fields)
