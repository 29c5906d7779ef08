"""Keeps a number of objects, and leaks nodes of a linked list until their type is named; says what that took.

It collects its garbage every twenty seconds, as trainers do at the end of an epoch.
"""

import gc
import json
import sys
import time

import heapwatch

PATIENCE = 1200.0


class Item:
    def __init__(self, number):
        self.number, self.neighbours = number, [number]


class Node:
    def __init__(self, before):
        self.payload, self.before = bytearray(2000), before


def leaking():
    newest = None
    while True:
        for _ in range(40):
            newest = Node(newest)
        yield


def main(objects):
    watch = heapwatch.start("heap", port=0)
    kept = [Item(number) for number in range(objects // 2)]
    leak, began, collected, longest = leaking(), time.monotonic(), 0.0, 0.0
    passed, is_named = 0.0, False
    while not is_named and passed < PATIENCE:
        passed = time.monotonic() - began
        next(leak)
        time.sleep(0.04)
        if passed - collected > 20:
            before = time.thread_time()
            gc.collect()
            longest = max(longest, time.thread_time() - before)
            collected = passed
        explained = watch.exporter.explainer.latest
        is_named = any("Node" in finding.type for finding in explained.findings)
    stall = watch.exporter.explainer.evaluator.search.census.pause_limit.longest
    print(json.dumps({"is_named": is_named, "named": passed, "stall": stall, "collection": longest}))
    del kept


if __name__ == "__main__":
    main(int(sys.argv[1]))
