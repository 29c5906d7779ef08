"""The receiver as it is run, with other constants: `python fast_receiver.py JSON ARGUMENTS...`

Its constants are seconds to minutes, for real trainers. A test waits for tenths of seconds.
"""

import json
import sys

from heapwatch_receiver.__main__ import main

if __name__ == "__main__":
    constants = json.loads(sys.argv[1])
    modules = [module for name, module in sys.modules.items() if name.startswith("heapwatch_receiver.")]
    modules.append(sys.modules["heapwatch_receiver.__main__"])
    for name, value in constants.items():
        owners = [module for module in modules if hasattr(module, name)]
        assert owners, f"the receiver has no constant {name}"
        for module in owners:
            setattr(module, name, value)
    sys.exit(main(sys.argv[2:]))
