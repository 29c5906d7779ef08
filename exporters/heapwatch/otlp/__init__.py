"""Series for an OpenTelemetry collector; imported where they are asked for, with `heapwatch[otlp]`."""
