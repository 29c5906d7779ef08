"""When a container is past the bound that it declares."""

# Times its bound. A container may be trimmed only every so often and be longer in between.
PAST_BOUND = 1.1
