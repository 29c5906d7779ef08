"""One program a file: `steps(held, dropped, watch)` yields after each change."""
