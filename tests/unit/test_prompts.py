"""Prompts and templates: files that say what a caller has to fill, the same in both languages."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest

import prompts
from prompts import LANGUAGES, PLACEHOLDERS, UnknownPrompt, load, templates

FOLDER = Path(prompts.__file__).parent


@pytest.mark.parametrize("name", sorted(PLACEHOLDERS))
def test_a_prompt_has_exactly_the_placeholders_that_are_listed(name: str) -> None:
    assert load(name).placeholders == PLACEHOLDERS[name]


def test_every_prompt_file_is_listed() -> None:
    assert {path.stem for path in FOLDER.glob("*.md")} == set(PLACEHOLDERS)


@pytest.mark.parametrize("name", sorted(PLACEHOLDERS))
def test_a_prompt_is_known_by_the_hash_of_its_bytes(name: str) -> None:
    assert load(name).sha256 == hashlib.sha256((FOLDER / f"{name}.md").read_bytes()).hexdigest()
    assert load(name) is load(name)


@pytest.mark.parametrize("name", sorted(PLACEHOLDERS))
def test_what_is_filled_in_is_not_read_for_placeholders_again(name: str) -> None:
    values = dict.fromkeys(PLACEHOLDERS[name], "plain") | {"nonce": "$language ${question}"}
    assert "$language ${question}" in load(name).fill(**values)


@pytest.mark.parametrize("name", sorted(PLACEHOLDERS))
def test_a_missing_value_is_an_error_and_never_an_empty_place(name: str) -> None:
    with pytest.raises(KeyError):
        load(name).fill(language="English")


def test_an_unknown_prompt_is_named() -> None:
    with pytest.raises(UnknownPrompt, match="chat-oracle-prompt"):
        load("chat-oracle-prompt")


@pytest.mark.scenario("EXE-7")
def test_the_executor_is_told_to_keep_a_narrow_question_narrow() -> None:
    text = load("chat-executor-prompt").text
    narrow = text[text.index("- `narrow`") :].splitlines()[0]
    assert all(
        word in narrow for word in ("one claim, at most two", "`observation`", "`negative_observation`", "unless")
    )


@pytest.mark.scenario("EXE-8")
def test_the_executor_is_told_that_a_runbook_proves_nothing() -> None:
    assert "runbook, a skill note or a past case never is a confirmed claim" in load("chat-executor-prompt").text


@pytest.mark.scenario("TPL-3")
def test_both_languages_have_the_same_templates_and_placeholders() -> None:
    chinese, english = (templates(lang) for lang in LANGUAGES)
    assert chinese.sections.keys() == english.sections.keys()
    for key in chinese.sections:
        assert chinese.placeholders(key) == english.placeholders(key), key
        assert chinese.sections[key], key
        assert english.sections[key], key


@pytest.mark.scenario("TPL-3")
def test_the_default_language_is_chinese() -> None:
    assert templates("fr") == templates("zh-CN")
    own = [re.sub(r"\$\w+", "", text).strip() for text in templates("zh-CN").sections.values()]
    assert all(re.search(r"[\u4e00-\u9fff]", text) for text in own if text)
    assert not any(re.search(r"[\u4e00-\u9fff]", text) for text in templates("en").sections.values())


def test_an_unknown_template_is_named() -> None:
    with pytest.raises(UnknownPrompt, match="degraded/nowhere"):
        templates("en")("degraded/nowhere")
