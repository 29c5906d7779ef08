"""Tables of pandas, Arrow and polars that are appended to, indexed and dropped."""

import itertools
import weakref

import pandas as pd

try:
    import polars
    import pyarrow
except ImportError:
    polars = pyarrow = None


def tables(held, dropped, watch):
    held["frame"] = pd.DataFrame({"at": [0], "text": ["a"]})
    for count in itertools.count(1):
        held["frame"] = pd.concat(
            [held["frame"], pd.DataFrame({"at": [count], "text": ["b" * (count % 30)]})]
        )
        frame = held["frame"].reset_index(drop=True)
        frame["more"] = frame["at"] * 2
        held["looked_up"] = frame.loc[frame["at"] > count // 2]
        index = pd.Index(range(count % 500 + 1))
        index.get_loc(0)
        held["index"] = index
        if len(frame) > 200:
            held["frame"] = frame.iloc[-50:]
        dropped.append(weakref.ref(frame))
        if pyarrow is not None:
            table = pyarrow.table({"a": list(range(count % 100 + 1)), "b": ["x"] * (count % 100 + 1)})
            held["table"] = table
            held["chunks"] = table.column("a")
            held["slice"] = table.slice(0, 3)
            held["bytes"] = pyarrow.py_buffer(b"z" * (count % 5000 + 1))
            many = polars.DataFrame({"a": list(range(count % 100 + 1)), "b": ["y"] * (count % 100 + 1)})
            held["polars"] = many
            column = many["a"]
            held["column"] = column
            column.append(polars.Series("a", [1, 2]))
            many.extend(many)
        yield
