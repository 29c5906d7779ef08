"""The files of the Helm chart, which asks for the configuration's values from values.yaml.

Objects are made from a configuration of placeholders, which become Helm's expressions afterwards. Rules hold
expressions of Prometheus in the same braces, so Helm reads them from a file as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import fields
from typing import Any

import yaml

from deploy.generator import monitoring, text
from deploy.generator.configuration import VALUES, Configuration
from deploy.generator.monitoring import Manifest

RULES = "files/rules.yaml"
_MAP = re.compile(r"^( *)'@([a-z_]+)@': ''\n", re.MULTILINE)
_MAPS = ("labels", "trainer_labels", "machine_nodes")
_OPTIONAL = {"sampleEnabled": "sample-job.yaml", "machineEnabled": "machine.yaml"}


def files() -> dict[str, str]:
    """File name to content."""
    generated = monitoring.ROOT / "dashboards" / "generated"
    boards = {path.name: path.read_text(encoding="utf-8") for path in sorted(generated.glob("*.json"))}
    placeholders: dict[str, Any] = {
        field.name: {f"@{field.name}@": ""} if field.name in _MAPS else f"@{field.name}@"
        for field in fields(Configuration)
    }
    asked = Configuration(**placeholders)
    version = _version()
    chart = {
        "apiVersion": "v2",
        "name": "heapwatch",
        "description": "Finds memory leaks in reinforcement-learning trainers, names them, cleans up.",
        "type": "application",
        "version": version,
        "appVersion": version,
        "kubeVersion": ">=1.25.0-0",
    }
    rule = monitoring.rule(asked)
    return {
        "Chart.yaml": text.file([chart]),
        "values.yaml": text.file([_values()]),
        RULES: text.file([rule.pop("spec")]),
        "templates/rules.yaml": _template([rule]) + "spec:\n" + _rules_of_file(),
        "templates/discovery.yaml": _template(monitoring.discovery(asked)),
        "templates/alertmanager.yaml": _template([monitoring.alertmanager_config(asked)]),
        "templates/receiver.yaml": _template(text.objects("receiver.yaml", asked)),
        **{
            f"templates/{name}": _only_if(value, _template(text.objects(name, asked)))
            for value, name in _OPTIONAL.items()
        },
        "templates/dashboards.yaml": _DASHBOARDS,
        **{f"dashboards/{name}": content for name, content in boards.items()},
    }


def _version() -> str:
    project = (monitoring.ROOT / "pyproject.toml").read_text(encoding="utf-8")
    found = re.search(r'^version = "(.+)"$', project, re.MULTILINE)
    assert found, "pyproject.toml has no version"
    return found[1]


def _values() -> Manifest:
    shipped = yaml.safe_load(VALUES.read_text(encoding="utf-8"))
    return {_camel(name): value for name, value in shipped.items()} | dict.fromkeys(_OPTIONAL, False)


def _template(documents: Iterable[Manifest]) -> str:
    written = _MAP.sub(_map, text.file(documents))
    return text.PLACE.sub(lambda match: f"{{{{ {_expression(match[1])} }}}}", written)


def _map(match: re.Match[str]) -> str:
    indent, name = match[1], _camel(match[2])
    return (
        f"{indent}{{{{- with .Values.{name} }}}}\n"
        f"{indent}{{{{- toYaml . | nindent {len(indent)} }}}}\n"
        f"{indent}{{{{- end }}}}\n"
    )


def _rules_of_file() -> str:
    used = ("namespace", "dashboards_url", "runbooks_url")
    replaced = "".join(f' | replace "@{name}@" {_argument(name)}' for name in used)
    return f'{{{{ .Files.Get "{RULES}"{replaced} | indent 2 }}}}\n'


def _argument(name: str) -> str:
    expression = _expression(name)
    return f"({expression})" if " " in expression else expression


def _expression(name: str) -> str:
    if name == "namespace":
        return ".Release.Namespace"
    value = f".Values.{_camel(name)}"
    return f'{value} | trimSuffix "/"' if name.endswith("_url") else value


def _only_if(value: str, template: str) -> str:
    return f"{{{{- if .Values.{value} }}}}\n{template}{{{{- end }}}}\n"


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)


_DASHBOARDS = (
    text.HEAD
    + """{{- range $path, $_ := .Files.Glob "dashboards/*.json" }}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ base $path | trimSuffix ".json" }}
  namespace: {{ $.Release.Namespace }}
  labels:
    grafana_dashboard: "1"
  annotations:
    grafana_folder: Heapwatch
data:
  {{ base $path }}: |
{{ $.Files.Get $path | indent 4 }}
{{- end }}
"""
)
