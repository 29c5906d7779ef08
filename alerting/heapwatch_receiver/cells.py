"""Reads cells of the database that hold JSON and may be damaged."""

from __future__ import annotations

import json
from typing import Any


class DamagedCell(ValueError):
    """A cell does not hold what was written."""


def mapping(cell: Any) -> dict[str, Any]:
    """The JSON object in a cell.

    Raises:
        DamagedCell: it holds no JSON object.

    """
    try:
        found = json.loads(cell)
    except (ValueError, TypeError, RecursionError) as error:
        raise DamagedCell(f"not JSON: {error}") from None
    if not isinstance(found, dict):
        raise DamagedCell(f"a JSON object was written, {type(found).__name__} is there")
    return found
