"""Programs that change everything as fast as they can while the library reads them without a budget."""

# One that goes on for so long after its time hangs: it shows where, and ends. The last reading may take long.
PATIENCE_SECONDS = 240
