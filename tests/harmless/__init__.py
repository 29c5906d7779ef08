"""Programs that change everything as fast as they can while the library looks at them without a budget."""

# One that goes on for so long after its time hangs: it shows where, and ends. The last look may take long.
PATIENCE_SECONDS = 240
