"""One file for each dashboard: a list of rows."""

from . import alerts, buffers, fleet, gpu, machine, phases, stack, trainer, world

_PAGES = (fleet, trainer, machine, world, buffers, phases, gpu, alerts, stack)
ALL = tuple(page.DASHBOARD for page in _PAGES)
