"""Trainers as other people write them, beside a running stack, healthy and leaking."""
