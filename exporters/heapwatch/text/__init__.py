"""Numbers and foreign texts as words: the only place that formats sizes, durations, tables and Markdown."""
