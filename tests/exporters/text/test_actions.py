from heapwatch.text.actions import annotation, append_summary, in_actions, relative


def test_an_annotation_is_one_command_whatever_its_text_holds(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    line = annotation("error", "a, b: c", "100%\n::set-output", str(tmp_path / "train.py"), 16)
    assert line == "::error file=train.py,line=16,title=a%2C b%3A c::100%25\\n::set-output"
    assert annotation("notice", "title", "text") == "::notice title=title::text"


def test_a_file_outside_of_the_repository_keeps_its_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert relative("/elsewhere/train.py") == "/elsewhere/train.py"


def test_only_a_job_has_a_summary(tmp_path, monkeypatch):
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    append_summary("lost")
    assert not in_actions()
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary"))
    append_summary("one\n")
    append_summary("two\n")
    assert in_actions()
    assert (tmp_path / "summary").read_text() == "one\ntwo\n"
