"""Takes the pictures of the terminal: `heapwatch top` and `heapwatch explain PID` on the tutorial's run.

python -m docs.terminal
"""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
import time
from pathlib import Path

from rich.console import Console
from rich.text import Text

from heapwatch.cli.seen import Entered
from heapwatch.cli.top_screen import TopScreen

IMAGES = Path(__file__).with_name("images")
PROGRAM = Path(__file__).with_name("tutorial") / "train.py"
SIZE = (80, 24)
VERDICT_SECONDS = 120.0


def main() -> None:
    """Run the trainer of the tutorial, look at it in both ways, and write the pictures."""
    with subprocess.Popen([sys.executable, PROGRAM.name], cwd=PROGRAM.parent, env=_bare()) as trainer:
        try:
            (IMAGES / "explain.svg").write_text(_explained(trainer.pid), encoding="utf-8")
            with Entered(trainer.pid) as source:
                until = time.monotonic() + VERDICT_SECONDS
                while source.read()[0].verdict != "leak" and time.monotonic() < until:
                    time.sleep(1)
                (IMAGES / "top.svg").write_text(asyncio.run(_top(source)), encoding="utf-8")
        finally:
            trainer.kill()


def _bare() -> dict[str, str]:
    return {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}


def _explained(pid: int) -> str:
    command = [sys.executable, "-m", "heapwatch", "explain", str(pid)]
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=400
    )
    console = Console(record=True, width=SIZE[0], file=open(os.devnull, "w"))  # noqa: SIM115
    console.print(Text(f"$ heapwatch explain {pid}", style="bold"))
    console.print(Text(done.stdout.rstrip()))
    return _alone(console.export_svg(title="heapwatch explain PID"))


async def _top(source: Entered) -> str:
    app = TopScreen(source, VERDICT_SECONDS)
    async with app.run_test(size=SIZE) as pilot:
        await app.workers.wait_for_complete()
        await pilot.pause()
        return _alone(app.export_screenshot(title="heapwatch top"))


def _alone(svg: str) -> str:
    """The picture without the fonts that it would load from elsewhere."""
    return re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)


if __name__ == "__main__":
    main()
