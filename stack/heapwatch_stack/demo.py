"""x."""


def run(stack, settings, console):
    raise NotImplementedError
