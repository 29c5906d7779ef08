"""One file for each dashboard: a list of rows."""

from . import alerts, buffers, fleet, gpu, phases, stack, trainer, world

ALL = tuple(board.DASHBOARD for board in (fleet, trainer, world, buffers, phases, gpu, alerts, stack))
