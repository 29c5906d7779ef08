"""What runs in a cluster: the receiver, which Alertmanager and Prometheus alone reach, and a sample Job."""

from __future__ import annotations

from deploy.generator.configuration import RECEIVER, RECEIVER_PORT, TRAINER_PORT, Configuration
from deploy.generator.monitoring import TOKEN_KEY, Manifest, metadata

_DATA = "/var/lib/heapwatch"
_SECRETS = "/run/heapwatch"
_NOBODY = 65534
_SELECTOR = {"app.kubernetes.io/name": RECEIVER}
_PROMETHEUS_PORT, _ALERTMANAGER_PORT, _DNS_PORT = 9090, 9093, 53

_POD_SECURITY: Manifest = {
    "runAsNonRoot": True,
    "runAsUser": _NOBODY,
    "runAsGroup": _NOBODY,
    "fsGroup": _NOBODY,
    "seccompProfile": {"type": "RuntimeDefault"},
}
_CONTAINER_SECURITY: Manifest = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
}


def receiver(configuration: Configuration) -> list[Manifest]:
    """Every object of the receiver: one pod with a volume."""
    return [
        service_account(configuration),
        service(configuration),
        stateful_set(configuration),
        network_policy(configuration),
    ]


def service_account(configuration: Configuration) -> Manifest:
    """An account without rights: the receiver asks Prometheus and trainers, never Kubernetes."""
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": metadata(RECEIVER, configuration),
        "automountServiceAccountToken": False,
    }


def service(configuration: Configuration) -> Manifest:
    """The name under which Alertmanager reaches the receiver."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(RECEIVER, configuration),
        "spec": {
            "selector": _SELECTOR,
            "ports": [{"name": "http", "port": RECEIVER_PORT, "targetPort": "http"}],
        },
    }


def _container(configuration: Configuration) -> Manifest:
    environment = {
        "HEAPWATCH_BIND": "0.0.0.0",
        "HEAPWATCH_ALLOWED_HOSTS": f"{RECEIVER},{RECEIVER}.{configuration.namespace}.svc",
        "HEAPWATCH_TOKEN_FILE": f"{_SECRETS}/{TOKEN_KEY}",
        "HEAPWATCH_PROMETHEUS_URL": configuration.prometheus_url,
        "HEAPWATCH_ALERTMANAGER_URL": configuration.alertmanager_url,
        "HEAPWATCH_RUNBOOKS_URL": configuration.runbooks_url,
        "HEAPWATCH_RECEIVER_DATABASE": f"{_DATA}/receiver.sqlite3",
    }
    probe = {"httpGet": {"path": "/healthz", "port": "http"}, "periodSeconds": 10, "timeoutSeconds": 5}
    return {
        "name": "receiver",
        "image": configuration.receiver_image,
        "env": [{"name": name, "value": value} for name, value in environment.items()],
        "ports": [{"name": "http", "containerPort": RECEIVER_PORT}],
        "readinessProbe": probe,
        "livenessProbe": {**probe, "failureThreshold": 6},
        "resources": {"requests": {"cpu": "50m", "memory": "128Mi"}, "limits": {"memory": "1Gi"}},
        "securityContext": _CONTAINER_SECURITY,
        "volumeMounts": [
            {"name": "ledger", "mountPath": _DATA},
            {"name": "secret", "mountPath": _SECRETS, "readOnly": True},
            {"name": "tmp", "mountPath": "/tmp"},
        ],
    }


def stateful_set(configuration: Configuration) -> Manifest:
    """One pod: two that share no ledger would both act."""
    secret = {
        "secretName": configuration.secret,
        "defaultMode": 0o440,
        "items": [{"key": TOKEN_KEY, "path": TOKEN_KEY}],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": metadata(RECEIVER, configuration),
        "spec": {
            "replicas": 1,
            "serviceName": RECEIVER,
            "selector": {"matchLabels": _SELECTOR},
            "template": {
                "metadata": {"labels": {**_SELECTOR, "app.kubernetes.io/part-of": "heapwatch"}},
                "spec": {
                    "serviceAccountName": RECEIVER,
                    "automountServiceAccountToken": False,
                    "securityContext": _POD_SECURITY,
                    "containers": [_container(configuration)],
                    "volumes": [{"name": "secret", "secret": secret}, {"name": "tmp", "emptyDir": {}}],
                },
            },
            "volumeClaimTemplates": [
                {
                    "metadata": {"name": "ledger"},
                    "spec": {
                        "accessModes": ["ReadWriteOnce"],
                        "resources": {"requests": {"storage": configuration.receiver_storage}},
                    },
                }
            ],
        },
    }


def network_policy(configuration: Configuration) -> Manifest:
    """In: Alertmanager and Prometheus. Out: these, the trainers' port, and name servers."""

    def pods(name: str) -> Manifest:
        return {"namespaceSelector": {}, "podSelector": {"matchLabels": {"app.kubernetes.io/name": name}}}

    def ports(*numbers: int, protocol: str = "TCP") -> list[Manifest]:
        return [{"protocol": protocol, "port": number} for number in numbers]

    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": metadata(RECEIVER, configuration),
        "spec": {
            "podSelector": {"matchLabels": _SELECTOR},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [{"from": [pods("alertmanager"), pods("prometheus")], "ports": ports(RECEIVER_PORT)}],
            "egress": [
                {"to": [pods("prometheus")], "ports": ports(_PROMETHEUS_PORT)},
                {"to": [pods("alertmanager")], "ports": ports(_ALERTMANAGER_PORT)},
                {
                    "to": [
                        {
                            "namespaceSelector": {},
                            "podSelector": {"matchLabels": dict(configuration.trainer_labels)},
                        }
                    ],
                    "ports": ports(TRAINER_PORT),
                },
                {"ports": [*ports(_DNS_PORT, protocol="UDP"), *ports(_DNS_PORT)]},
            ],
        },
    }


def sample_job(configuration: Configuration) -> Manifest:
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
                    "securityContext": _POD_SECURITY,
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
                            "securityContext": _CONTAINER_SECURITY,
                            "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
                        }
                    ],
                    "volumes": [{"name": "tmp", "emptyDir": {}}],
                },
            },
        },
    }
