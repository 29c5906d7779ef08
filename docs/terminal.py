"""Takes the pictures of the terminal, on the tutorial's run: `heapwatch explain PID` and, in tmux, `top`.

python -m docs.terminal [explain] [top]
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

IMAGES = Path(__file__).with_name("images")
PROGRAM = Path(__file__).with_name("tutorial") / "train.py"
WIDTH = 80
SIZES = {"top.svg": (WIDTH, 24), "top-wide.svg": (150, 36)}
VERDICT_SECONDS = 240.0
LONGEST_PAUSE = 1.5  # seconds of the cast; the run takes longer
FADE = "@keyframes shown { from { opacity: 0; } }"


def main(wanted: Sequence[str]) -> None:
    """Run the trainer of the tutorial, look at it in both ways, and write the pictures."""
    with subprocess.Popen([sys.executable, PROGRAM.name], cwd=PROGRAM.parent, env=_bare()) as trainer:
        try:
            if not wanted or "explain" in wanted:
                (IMAGES / "explain.svg").write_text(_explained(trainer.pid), encoding="utf-8")
            for name, size in SIZES.items() if not wanted or "top" in wanted else ():
                (IMAGES / name).write_text(_top(trainer.pid, size), encoding="utf-8")
        finally:
            trainer.kill()


def _bare() -> dict[str, str]:
    return {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}


def _explained(pid: int) -> str:
    """A cast: each line appears when it was printed, after a pause of a few seconds at most."""
    console = _console(WIDTH)
    rows: list[float] = [0.0]
    console.print(Text(f"$ heapwatch explain {pid}", style="bold"))
    command = [sys.executable, "-m", "heapwatch", "explain", str(pid)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as explain:
        shown, printed = 1.0, time.monotonic()
        for line in explain.stdout or ():
            now = time.monotonic()
            shown, printed = shown + min(now - printed, LONGEST_PAUSE), now
            text = Text(line.rstrip())
            rows += [shown] * len(text.wrap(console, WIDTH))
            console.print(text)
    svg = _alone(console.export_svg(title="heapwatch explain PID"))
    for row, at in enumerate(rows):
        clip = re.compile(rf'(<text [^>]*clip-path="url\(#[\w-]+-line-{row}\)")')
        svg = clip.sub(rf'\1 style="animation: shown 1ms {at:.1f}s both"', svg)
    return svg.replace("<style>", f"<style>\n    {FADE}", 1)


def _top(pid: int, size: tuple[int, int]) -> str:
    """The screen in a terminal of tmux, once it names the leak."""
    with tempfile.TemporaryDirectory() as folder:
        tmux = ["tmux", "-f", os.devnull, "-S", f"{folder}/socket"]
        command = shlex.join([sys.executable, "-m", "heapwatch", "top", str(pid)])
        columns, lines = map(str, size)
        start = [*tmux, "new-session", "-d", "-x", columns, "-y", lines, f"COLORTERM=truecolor {command}"]
        # Without the line of tmux itself, which would take one of the screen's.
        subprocess.run([*start, ";", "set", "-g", "status", "off"], check=True)
        try:
            until = time.monotonic() + VERDICT_SECONDS
            while "leak: " not in _screen(tmux) and time.monotonic() < until:
                time.sleep(1)
            screen = _screen(tmux)
            subprocess.run([*tmux, "send-keys", "q"], check=True)
            time.sleep(3)  # the process is left
        finally:
            subprocess.run([*tmux, "kill-server"], check=False, stderr=subprocess.DEVNULL)
    console = _console(size[0])
    console.print(Text.from_ansi(screen), soft_wrap=True)
    return _alone(console.export_svg(title="heapwatch top"))


def _screen(tmux: Sequence[str]) -> str:
    command = [*tmux, "capture-pane", "-e", "-p", "-N"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.rstrip("\n")


def _console(width: int) -> Console:
    return Console(record=True, width=width, file=open(os.devnull, "w"))


def _alone(svg: str) -> str:
    """The picture without the fonts that it would load from elsewhere."""
    return re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)


if __name__ == "__main__":
    main(sys.argv[1:])
