"""A training Job that is found, scraped and cleaned up."""

from __future__ import annotations

from deploy.generator.configuration import TRAINER_PORT, Configuration
from deploy.generator.monitoring import TOKEN_KEY, Manifest
from deploy.generator.receiver import CONTAINER_SECURITY, POD_SECURITY


def job(configuration: Configuration) -> Manifest:
    """The example trainer as a Job; what another trainer needs is the label, the port and the environment."""
    environment: list[Manifest] = [
        {"name": "HEAPWATCH_BIND", "value": "0.0.0.0"},
        {
            "name": "HEAPWATCH_TOKEN",
            "valueFrom": {"secretKeyRef": {"name": configuration.secret, "key": TOKEN_KEY}},
        },
        {"name": "HEAPWATCH_PROFILE", "value": configuration.sample_profile},
        {"name": "HEAPWATCH_STATE", "value": "/tmp/heapwatch"},
        {"name": "HEAPWATCH_TARGETS_DIR", "value": "/tmp/heapwatch/targets"},
    ]
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "heapwatch-sample", "namespace": configuration.namespace},
        "spec": {
            "backoffLimit": 3,
            "ttlSecondsAfterFinished": 3600,
            "template": {
                "metadata": {"labels": dict(configuration.trainer_labels)},
                "spec": {
                    "restartPolicy": "OnFailure",
                    "automountServiceAccountToken": False,
                    "securityContext": POD_SECURITY,
                    "containers": [
                        {
                            "name": "trainer",
                            "image": configuration.sample_image,
                            "env": environment,
                            "ports": [
                                {"name": configuration.trainer_port_name, "containerPort": TRAINER_PORT}
                            ],
                            "resources": {
                                "requests": {"cpu": "500m", "memory": "1Gi"},
                                "limits": {"memory": "2Gi"},
                            },
                            "securityContext": CONTAINER_SECURITY,
                            "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
                        }
                    ],
                    "volumes": [{"name": "tmp", "emptyDir": {}}],
                },
            },
        },
    }
