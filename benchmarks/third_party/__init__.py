"""Public trainers beside a running stack: what Heapwatch says of them, healthy and leaking."""
