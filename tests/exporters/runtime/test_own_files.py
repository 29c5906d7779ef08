import os
import stat

import pytest

from heapwatch.runtime.own_files import (
    MOST_BYTES,
    UnusableFile,
    check_replaceable,
    make_private,
    read_json,
    read_text,
    replace,
)
from tests.support.unreadable_files import UNREADABLE

NEEDS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root makes files of others")


@pytest.fixture
def file(tmp_path):
    return tmp_path / "file.json"


SAID = {
    "a pipe": "a regular file is allowed",
    "a folder": "a regular file is allowed",
    "a gigabyte": f"is too large: up to {MOST_BYTES} bytes are allowed",
    "no UTF-8": "is not text: UTF-8 is allowed",
    "no JSON": "is not valid JSON",
}


@pytest.mark.parametrize("kind", [kind for kind in UNREADABLE if kind != "other JSON"])
def test_a_file_that_is_no_small_document_is_refused_in_one_line(file, kind):
    UNREADABLE[kind](file)
    with pytest.raises(UnusableFile, match=SAID.get(kind)) as refused:
        read_json(file)
    assert str(file) in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_missing_file_and_a_name_that_is_none_are_distinguished(file):
    with pytest.raises(FileNotFoundError):
        read_text(file)
    with pytest.raises(UnusableFile, match="null"):
        read_text(f"{file}/a\0b")


@NEEDS_ROOT
def test_a_file_of_another_user_is_refused_unless_the_user_named_it(file):
    file.write_text("x")
    os.chown(file, 61234, 61234)
    with pytest.raises(UnusableFile, match=r"belongs to another user \(uid 61234\)"):
        read_text(file)
    assert read_text(file, any_owner=True) == "x"


def test_a_user_may_name_a_secret_that_is_mounted_behind_links(file):
    (file.parent / "..data").mkdir()
    (file.parent / "..data" / "token").write_text("secret")
    file.symlink_to("..data/token")
    assert read_text(file, any_owner=True) == "secret"
    with pytest.raises(UnusableFile):
        read_text(file)


@pytest.mark.parametrize("mode", [0o640, 0o604])
def test_a_secret_that_others_may_read_is_refused(file, mode):
    file.write_text("x")
    file.chmod(mode)
    with pytest.raises(UnusableFile, match=rf"by others \(mode 0{mode:o}\)"):
        read_text(file, private=True)


def test_what_is_written_replaces_whatever_has_the_name(file):
    os.mkfifo(file)
    replace(file, "[1]", 0o640)
    assert read_json(file) == [1]
    assert file.stat().st_mode & 0o777 == 0o640
    replace(file, "[2]")
    assert file.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in file.parent.iterdir()] == [file.name]


def test_only_a_file_and_a_free_name_may_be_replaced(tmp_path, file):
    check_replaceable(file)
    file.touch()
    check_replaceable(file)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    for name in ("pipe", "folder", "/dev/null"):
        with pytest.raises(UnusableFile, match="a regular file is allowed"):
            check_replaceable(tmp_path / name)


@pytest.mark.parametrize("umask", [0o000, 0o777])
def test_folders_are_private_whatever_the_umask(tmp_path, umask):
    before = os.umask(umask)
    try:
        tmp_path.chmod(0o755)
        make_private(tmp_path / "a" / "b" / "c")
        make_private(tmp_path / "a" / "b" / "c")
        make_private(tmp_path)
    finally:
        os.umask(before)
    for folder in ("a", "a/b", "a/b/c"):
        assert stat.S_IMODE((tmp_path / folder).stat().st_mode) == 0o700
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755, "one that exists keeps its mode"
