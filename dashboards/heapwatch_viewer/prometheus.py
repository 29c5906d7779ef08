"""The viewer's only source of data: Prometheus' HTTP API."""

from dataclasses import dataclass
from typing import Any

import httpx

from heapwatch_viewer.timerange import Window


class QueryError(Exception):
    """A query failed; the message is for the person who looks at the panel."""


class UnreachableError(QueryError):
    """Prometheus does not answer at all."""


@dataclass(frozen=True)
class Series:
    """One series.

    Attributes:
        points: (seconds since 1970, value), `step` seconds apart where nothing is missing; 0 for one point.

    """

    labels: dict[str, str]
    points: list[tuple[float, float]]
    name: str = ""
    ref_id: str = "A"
    step: int = 0


class Prometheus:
    """Queries over HTTP; at most eight at a time.

    Args:
        url: base address, such as `http://127.0.0.1:9090`.
        timeout: seconds for one query.

    """

    def __init__(self, url: str, timeout: float = 20.0) -> None:
        self.url = url.rstrip("/")
        self._client = httpx.AsyncClient(
            base_url=self.url, timeout=timeout, limits=httpx.Limits(max_connections=8), trust_env=False
        )

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def range(self, expression: str, window: Window) -> list[Series]:
        """Evaluate over `window`. Raises QueryError."""
        data = await self._get(
            "query_range",
            {"query": expression, "start": window.start, "end": window.end, "step": window.step},
        )
        return [_series(item["metric"], item["values"], window.step) for item in data["result"]]

    async def instant(self, expression: str, moment: float) -> list[Series]:
        """Evaluate at `moment`, seconds since 1970. Raises QueryError."""
        data = await self._get("query", {"query": expression, "time": moment})
        return [_series(item["metric"], [item["value"]]) for item in data["result"]]

    async def label_values(self, label: str, selector: str, window: Window) -> list[str]:
        """Values of `label` on the series that `selector` picks ("" for all). Raises QueryError."""
        parameters: dict[str, Any] = {"start": window.start, "end": window.end}
        if selector:
            parameters["match[]"] = selector
        return list(await self._get(f"label/{label}/values", parameters))

    async def _get(self, path: str, parameters: dict[str, Any]) -> Any:
        try:
            # POST keeps long expressions out of the address; labels have only GET.
            if path.startswith("label/"):
                answer = await self._client.get(f"/api/v1/{path}", params=parameters)
            else:
                answer = await self._client.post(f"/api/v1/{path}", data=parameters)
            body = answer.json()
        except (httpx.HTTPError, ValueError) as problem:  # no answer, or none in JSON
            text = f"Prometheus does not answer at {self.url} ({type(problem).__name__})."
            raise UnreachableError(text) from None
        if body.get("status") != "success":
            raise QueryError(str(body.get("error", f"Prometheus answered {answer.status_code}")))
        return body["data"]


def _series(labels: dict[str, str], values: list[tuple[float, str]], step: int = 0) -> Series:
    return Series(labels, [(float(moment), float(value)) for moment, value in values], step=step)
