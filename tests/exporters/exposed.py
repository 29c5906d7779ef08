"""What families say, as plain numbers."""

from heapwatch.analysis.readings import Readings


def values(families, name, label):
    """The samples of `name` by one label."""
    return Readings(families).by(name, label)


def value(families, name, **labels):
    """One sample, None when it is not there."""
    return Readings(families).value(name, **labels)
