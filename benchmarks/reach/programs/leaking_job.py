"""The one process of a machine that leaks 24 MB a minute."""

from job import work

if __name__ == "__main__":
    work()
