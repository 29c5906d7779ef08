"""What Heapwatch reaches without a change of the program: processes that run already."""
