"""The words of a verdict."""

from heapwatch.judge.verdict import MEANINGS, SERIOUS, WORDS, exit_code


def test_each_word_says_what_it_claims_and_what_to_do():
    assert tuple(MEANINGS) == WORDS
    assert all(meaning.claim and meaning.action for meaning in MEANINGS.values())


def test_what_someone_has_to_act_on_fails_a_command():
    assert {word for word in WORDS if exit_code(word)} == set(SERIOUS)


def test_a_word_of_a_later_version_fails_no_command():
    assert exit_code("improbable") == 0
