"""Programs of the field that wait, visited while they do: a kernel, torchrun, workers, Ray, servers, runs."""
