"""The package page: README.md, its links made absolute, since they lead nowhere outside a clone."""

import re
from pathlib import Path

from setuptools import setup

BLOB = "https://github.com/heapwatch/heapwatch/blob/main/"
RAW = "https://raw.githubusercontent.com/heapwatch/heapwatch/main/"
LINK = re.compile(r"(!?)(\[(?:[^\[\]]|\[[^\]]*\])*\])\((?!https?://|#)([^)\s]+)\)")


def absolute(text: str) -> str:
    """Markdown with its relative links and pictures at the repository's address."""
    return LINK.sub(lambda link: f"{link[1]}{link[2]}({RAW if link[1] else BLOB}{link[3]})", text)


setup(
    long_description=absolute((Path(__file__).parent / "README.md").read_text(encoding="utf-8")),
    long_description_content_type="text/markdown",
)
