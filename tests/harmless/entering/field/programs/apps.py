"""What the servers serve."""

from collections.abc import Awaitable, Callable
from typing import Any

ANSWER = b"42\n"


async def asgi(scope: dict, _: object, send: Callable[[dict], Awaitable[None]]) -> None:
    if scope["type"] == "http":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": ANSWER})


def flask() -> Any:
    from flask import Flask

    app = Flask(__name__)
    app.get("/")(lambda: ANSWER)
    return app
