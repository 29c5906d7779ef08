"""The IPython extension: what the cells of a notebook leave behind."""
