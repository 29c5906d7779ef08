"""What the generator takes as a configuration, and what it says of one that is wrong."""

from pathlib import Path

import pytest
import yaml

from deploy.generator.configuration import load
from tests.support.repository import REPOSITORY

SHIPPED = REPOSITORY / "deploy" / "configuration.yml"


def changed(folder: Path, **values: object) -> Path:
    file = folder / "configuration.yml"
    whole = yaml.safe_load(SHIPPED.read_text()) | values
    file.write_text(yaml.safe_dump({name: value for name, value in whole.items() if value is not None}))
    return file


def test_jobs_are_named_as_the_operator_names_them(tmp_path: Path) -> None:
    configuration = load(changed(tmp_path, namespace="ml"))
    assert configuration.trainer_job == "ml/heapwatch-trainers"
    assert configuration.receiver_job == "heapwatch-receiver"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"namespace": None}, "missing or unknown: namespace"),
        ({"name_space": "ml"}, "missing or unknown: name_space"),
        ({"secret": ""}, "secret must not be empty"),
        ({"trainer_labels": {}}, "every pod would be scraped"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, values: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load(changed(tmp_path, **values))


def test_a_file_that_is_no_mapping_is_refused(tmp_path: Path) -> None:
    (tmp_path / "configuration.yml").write_text("- monitoring\n")
    with pytest.raises(ValueError, match="a mapping is needed"):
        load(tmp_path / "configuration.yml")
