"""One file a dashboard, each a list of rows."""

from . import fleet, trainer

ALL = (fleet.DASHBOARD, trainer.DASHBOARD)
