"""What happens to training when what it watches, or who asks it, means no good."""

from __future__ import annotations

import signal
import time
from contextlib import suppress

<<<<<<< HEAD
import httpx

=======
from tests.alerting.faults.stage import Stage
>>>>>>> less-a2
from tests.alerting.harness import TOKEN, wait_for
from tests.alerting.stage import Stage
from tests.attacks.programs import raw, real_trainer
from tests.attacks.record import Exchange, attack

ENDING = """
    import asyncio

    def end(*_):
        raise {error}

    watch.entities("food", end)
    watch.size("policy", end)
    watch.on_cleanup(end)
"""


@attack("a source and a cleanup function that raise SystemExit, CancelledError and GeneratorExit")
def ending(stage: Stage, exchange: Exchange) -> None:
    for error in ("SystemExit(3)", "asyncio.CancelledError()", "GeneratorExit()"):
        with real_trainer(stage.folder("trainer"), ENDING.replace("{error}", error)) as trainer:
            exchange.sent(f"raise {error}, in a source and in a cleanup")
            answer = trainer.cleanup({"timeout_seconds": 10})
            exchange.back(f"{answer.status_code} errors: {answer.json()['errors']}; training goes on")
            assert answer.status_code == 200
            assert trainer.makes_progress()


@attack("SIGTERM while a source is read: the trainer's own handler still ends it")
def terminated(stage: Stage, exchange: Exchange) -> None:
    declarations = """
        import signal
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
        watch.entities("food", lambda: time.sleep(3600))
    """
    with real_trainer(stage.folder("trainer"), declarations) as trainer:
        time.sleep(1.0)
        exchange.sent("SIGTERM to a trainer whose source hangs")
        trainer.process.send_signal(signal.SIGTERM)
        code = trainer.process.wait(20)
        exchange.back(f"exit status {code}")
        assert code == 143


WORLDS = """
    import Box2D

    worlds = [Box2D.b2World(), Box2D.b2World()]
    watch.bodies(lambda: worlds)

    @watch.on_cleanup
    def clean(action):
        return {"locked": sum(world.locked for world in worlds)}

    class Listener(Box2D.b2ContactListener):
        def BeginContact(self, contact):
            for _ in range(50):
                watch._exporter.safe_point.due = True
                watch.step()

    worlds[1].contactListener = Listener()
    print(watch.port, flush=True)
    while True:
        bodies = [worlds[1].CreateDynamicBody(position=(0, 0)) for _ in range(2)]
        for body in bodies:
            body.CreateFixture(shape=Box2D.b2PolygonShape(box=(1, 1)))
        worlds[1].Step(1 / 60, 8, 3)
        for body in bodies:
            worlds[1].DestroyBody(body)
        watch.step()
"""


@attack("a cleanup asked for while one of two worlds is inside its own step")
def two_worlds(stage: Stage, exchange: Exchange) -> None:
    with real_trainer(stage.folder("trainer"), WORLDS) as trainer:
        for number in range(5):
            exchange.sent(f"POST /force_cleanup, number {number + 1}, mostly inside Step()")
            answer = trainer.cleanup({"timeout_seconds": 10, "request_id": str(number)}).json()
            exchange.back(f"{answer['status']}, worlds locked meanwhile: {answer.get('removed')}")
            assert answer["removed"] == {"locked": 0}


GUARDS = {
    "another site's page (Origin)": ({"Origin": "https://evil.example"}, 403),
    "another site's page (Sec-Fetch-Site)": ({"Sec-Fetch-Site": "cross-site"}, 403),
    "a name made to point here (Host)": ({"Host": "evil.example:7777"}, 421),
    "no token": ({"Authorization": ""}, 401),
    "a guessed token": ({"Authorization": "Bearer guessed"}, 401),
    "basic authorization": ({"Authorization": "Basic dXNlcjpwYXNz"}, 401),
    "a form": ({"Content-Type": "application/x-www-form-urlencoded"}, 415),
}


@attack("POST /force_cleanup from a web page, without a token, with a guessed one", quick=False)
def guards(stage: Stage, exchange: Exchange) -> None:
    with real_trainer(stage.folder("trainer")) as trainer:
        for what, (headers, expected) in GUARDS.items():
            answer = trainer.cleanup(**headers)
            exchange.answered(f"POST /force_cleanup, {what}", answer, expected)
        assert trainer.value('trainer_cleanups_total{action="emergency",trigger="http"}') == 0


SMUGGLED = {
    "two lengths": b"Content-Length: 2\r\nContent-Length: 30\r\n\r\n{}",
    "chunks and a length": b"Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n0\r\n\r\n",
    "a pipelined second request": b"Content-Length: 2\r\n\r\n{}POST /force_cleanup HTTP/1.1\r\n\r\n",
    "a body of 2 GB announced": b"Content-Length: 2147483648\r\n\r\n{}",
    "a head of 1 MB": b"X: " + b"y" * 1_000_000 + b"\r\n\r\n",
    "deep JSON": b"Content-Type: application/json\r\nContent-Length: 10000\r\n\r\n" + b"[" * 10000,
}


@attack("smuggled, endless and malformed requests to a trainer")
def smuggling(stage: Stage, exchange: Exchange) -> None:
    head = f"POST /force_cleanup HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {TOKEN}\r\n".encode()
    with real_trainer(stage.folder("trainer")) as trainer:
        for what, rest in SMUGGLED.items():
            answer = b""
            with suppress(ConnectionError):
                answer = raw(trainer.port, head + rest)
            exchange.sent(what)
            exchange.back(answer.partition(b"\r\n")[0].decode() or "connection closed")
            assert answer.count(b"HTTP/1.1 ") <= 1
        assert trainer.makes_progress()


@attack("a trainer killed without warning: its target does not stay", quick=False)
def killed(stage: Stage, exchange: Exchange) -> None:
    from heapwatch import discovery

    folder = stage.folder("trainer")
    with real_trainer(folder) as trainer:
        wait_for(lambda: list((folder / "targets").glob("*.json")), "its target")
        trainer.process.kill()
        trainer.process.wait()
        exchange.sent("SIGKILL")
        swept = discovery.sweep(folder / "targets")
        exchange.back(f"swept: {[path.name for path in swept]}")
        assert swept
