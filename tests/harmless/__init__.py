"""Programs that change everything as fast as they can while the library looks at them without a budget."""
