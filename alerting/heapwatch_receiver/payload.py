"""Alertmanager's webhook payload, version 4.

Source: https://prometheus.io/docs/alerting/latest/configuration/#webhook_config
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, AwareDatetime, BaseModel, Field


def _in_utc(time: datetime) -> datetime:
    try:
        return time.astimezone(timezone.utc)
    except OverflowError:
        raise ValueError("in UTC it is outside the years 1 to 9999") from None


# Since Prometheus 3 and Alertmanager 0.27 any UTF-8 text may be a label name.
LabelName = Annotated[str, Field(min_length=1, max_length=256)]
LabelValue = Annotated[str, Field(max_length=4096)]
Labels = Annotated[dict[LabelName, LabelValue], Field(max_length=64)]
# Numbers are not accepted as times.
Time = Annotated[AwareDatetime, Field(strict=True), AfterValidator(_in_utc)]


class WebhookAlert(BaseModel):
    """One alert of a notification."""

    status: Literal["firing", "resolved"]
    labels: Labels
    annotations: dict[str, str] = {}
    startsAt: Time
    endsAt: Time | None = None
    fingerprint: Annotated[str, Field(pattern=r"^[0-9a-fA-F]{1,64}$")]

    @property
    def ends_at(self) -> float | None:
        """Seconds since the epoch; None while it fires and no end is set, which Go writes as year 1."""
        return self.endsAt.timestamp() if self.endsAt and self.endsAt.year > 1 else None


class Notification(BaseModel):
    """The body of Alertmanager's webhook: a group of alerts. Other fields are ignored."""

    version: Literal["4"]
    alerts: Annotated[list[WebhookAlert], Field(max_length=20_000)]


def explain(errors: Sequence[Any]) -> str:
    """What pydantic found wrong in a request, in one line of bounded length."""
    shown = [
        f"{'.'.join(str(part)[:100] for part in error['loc']) or 'body'}: {error['msg'][:300]}"
        for error in errors[:5]
    ]
    more = f" (and {len(errors) - 5} more)" if len(errors) > 5 else ""
    return "; ".join(shown) + more
