"""What a trainer's endpoint serves, and what its families say, as plain numbers."""

import urllib.request

from heapwatch.collectors.readings import Readings


def get(watch, path="metrics"):
    """What a served watch answers."""
    with urllib.request.urlopen(watch.server.url + path, timeout=20) as response:
        return response.read().decode()


def values(families, name, label):
    """The samples of `name` by one label."""
    return Readings(families).by(name, label)


def value(families, name, **labels):
    """One sample, None when it is not there."""
    return Readings(families).value(name, **labels)
