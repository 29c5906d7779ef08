"""A Jupyter kernel, which waits for the next cell."""

import os

from jupyter_client import KernelManager

from tests.harmless.entering.field.programs.waiting import PATIENCE_SECONDS, wait


def main() -> None:
    manager = KernelManager(kernel_name="python3")
    manager.start_kernel()
    client = manager.client()
    client.start_channels()
    client.wait_for_ready(timeout=PATIENCE_SECONDS)
    cells = 0

    def work() -> None:
        nonlocal cells
        cells += 1
        said = []

        def keep(message: dict) -> None:
            if message["msg_type"] == "stream":
                said.append(message["content"]["text"])

        cell = f"numbers = [*globals().get('numbers', []), {cells}]\nprint(sum(numbers))"
        reply = client.execute_interactive(cell, timeout=PATIENCE_SECONDS, output_hook=keep)
        assert reply["content"]["status"] == "ok"
        assert "".join(said) == f"{sum(range(cells + 1))}\n"

    process = manager.provisioner.process
    wait({"client": os.getpid(), "kernel": process.pid}, work)
    client.stop_channels()
    manager.shutdown_kernel()
    assert process.wait(PATIENCE_SECONDS) == 0


if __name__ == "__main__":
    main()
