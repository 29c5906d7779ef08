import heapwatch
from heapwatch.cli.main import main

TOKEN = "correct-horse-battery-staple"


def test_a_trainer_is_cleaned_by_its_address_or_its_name(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("HEAPWATCH_TARGETS_DIR", str(tmp_path))
    monkeypatch.setenv("HEAPWATCH_TOKEN", TOKEN)
    asked = []
    with heapwatch.start("walker", port=0, token=TOKEN) as watch:
        watch.on_cleanup(asked.append)
        watch.step()
        url = f"http://127.0.0.1:{watch.port}/force_cleanup"
        done = watch._exporter.cleanup_queue
        monkeypatch.setattr(
            "heapwatch.cli.cleanup.post_json",
            lambda url, document, token, timeout: (
                (
                    asked.append((url, document["action"], token))
                    or done.run(document["action"], "", "http").as_dict(),
                )
                and (200, done.last.as_dict())
            ),
        )
        assert main(["cleanup", f"127.0.0.1:{watch.port}", "--action", "regular"]) == 0
        assert main(["cleanup", "walker"]) == 0
    assert asked == [(url, "regular", TOKEN), "regular", (url, "emergency", TOKEN), "emergency"]
    said = capsys.readouterr().out
    assert "Regular cleanup completed" in said
    assert "Emergency cleanup completed" in said


def test_without_a_token_or_a_trainer_it_says_so(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("HEAPWATCH_TARGETS_DIR", str(tmp_path))
    for name in ("HEAPWATCH_TOKEN", "HEAPWATCH_TOKEN_FILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("heapwatch.cli.cleanup.token_of", lambda _: None)
    assert main(["cleanup", "walker"]) == 64
    assert "needs the trainer's token" in capsys.readouterr().err
    monkeypatch.setenv("HEAPWATCH_TOKEN", TOKEN)
    assert main(["cleanup", "127.0.0.1:1"]) == 3
    assert main(["cleanup", "nobody"]) == 3
