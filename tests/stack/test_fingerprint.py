import pytest

from heapwatch_stack.fingerprint import fingerprint


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "leak.yml").write_text("a: 1")
    (tmp_path / "notes.txt").write_text("nothing reads this")
    return tmp_path


def test_the_same_files_have_the_same_fingerprint(folder):
    assert fingerprint(folder) == fingerprint(folder)
    assert len(fingerprint(folder)) == 16


def test_content_and_names_count(folder):
    before = fingerprint(folder)
    (folder / "rules" / "leak.yml").write_text("a: 2")
    changed = fingerprint(folder)
    (folder / "rules" / "leak.yml").rename(folder / "rules" / "growth.yml")
    assert len({before, changed, fingerprint(folder)}) == 3


def test_a_new_file_counts_and_one_of_another_kind_does_not(folder):
    before = fingerprint(folder)
    (folder / "more.txt").write_text("nor this")
    assert fingerprint(folder) == before
    (folder / "more.yml").write_text("")
    assert fingerprint(folder) != before


def test_links_to_folders_are_followed(folder, tmp_path_factory):
    link = tmp_path_factory.mktemp("state") / "rules"
    link.symlink_to(folder / "rules")
    assert fingerprint(link) == fingerprint(folder / "rules")


def test_a_file_by_itself_counts_whatever_its_kind(folder):
    before = fingerprint(folder / "notes.txt")
    (folder / "notes.txt").write_text("changed")
    assert fingerprint(folder / "notes.txt") != before
