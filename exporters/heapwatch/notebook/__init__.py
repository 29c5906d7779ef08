"""The IPython extension, which shows the memory that cells of a notebook keep."""
