"""CuPy arrays in streams and pools that are emptied, with kernels that are compiled and graphs captured."""

import itertools
import weakref

import cupy


def cupy_arrays(held, dropped, watch):
    stream = cupy.cuda.Stream(non_blocking=True)
    held["stream"] = stream
    held["kernel"] = twice = cupy.ElementwiseKernel("float32 x", "float32 y", "y = 2 * x", "twice")
    for count in itertools.count(1):
        with stream:
            array = cupy.full((count % 500 + 1, 10), 3, dtype=cupy.float32)
            held["array"] = [array, array[::2], twice(array)]
            held["moved"] = cupy.asnumpy(array, stream=stream)
            event = stream.record()
        dropped.append(weakref.ref(array))
        event.synchronize()
        held["pinned"] = cupy.cuda.alloc_pinned_memory(1000 + count % 50)
        if float(held["array"][2].sum()) != 6 * array.size:
            raise AssertionError("a wrong sum")
        if count % 20 == 0:
            cupy.get_default_memory_pool().free_all_blocks()
            cupy.get_default_pinned_memory_pool().free_all_blocks()
        if count % 3 == 0:
            output = cupy.zeros_like(array)
            cupy.cuda.Device().synchronize()
            with stream:
                stream.begin_capture()
                twice(array, output)
                graph = stream.end_capture()
            held["graph"] = graph
            graph.launch(stream)
            stream.synchronize()
            if float(output[0, 0]) != 6:
                raise AssertionError("a wrong replay")
        yield
