"""The servers of the stack that attacks are aimed at."""

from tests.alerting.conftest import scene, shared_scene

__all__ = ["scene", "shared_scene"]
