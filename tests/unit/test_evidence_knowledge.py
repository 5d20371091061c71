"""lookup_knowledge over Markdown: sections, front matter, two languages, obsolete documents marked and not hidden."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from handlers.evidence import runbooks
from handlers.evidence.knowledge import Runbooks
from handlers.evidence.protocol import BadSource, ToolResult
from streams.contract import EvidenceRef, RetrievalDetails

LEAK = """---
id: RB-014
title: HikariCP connection leak
services: [payment-service]
updated: 2025-11-02
---
# HikariCP connection leak
**Symptom:** Connection is not available, active = max.
## Confirm
hikaricp_connections_leaked rises.
"""
OLD = "---\nid: RB-002\ntitle: Network partition\nstatus: obsolete\n---\n# Network partition\nConnection timeouts between zones.\n"
CHINESE = "# 连接池耗尽\n## 症状\n请求超时，等待连接的线程数上升。\n## 处理\n检查慢查询。\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in (("leak.md", LEAK), ("old.md", OLD), ("pool-zh.md", CHINESE)):
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def look_up(folder: Path, query: str, **arguments: Any) -> ToolResult:
    return asyncio.run(Runbooks([str(folder)]).invoke({"query": query, **arguments}))


def details(result: ToolResult) -> RetrievalDetails:
    assert result.retrieval_details is not None
    return result.retrieval_details


def refs(result: ToolResult) -> tuple[EvidenceRef, ...]:
    return details(result).evidence_refs or ()


@pytest.mark.scenario("EXE-8")
def test_the_tool_is_of_the_kind_knowledge(folder: Path) -> None:
    assert Runbooks([str(folder)]).spec.evidence_kind == "knowledge"


def test_a_section_is_quoted_behind_what_document_it_is_of(folder: Path) -> None:
    first = refs(look_up(folder, "leaked connections rise"))[0]
    assert first.raw_path == "leak.md#confirm"
    assert first.text == (
        "RB-014 HikariCP connection leak | services: payment-service | updated: 2025-11-02\n"
        "## Confirm\nhikaricp_connections_leaked rises."
    )


def test_chinese_is_found_by_its_characters(folder: Path) -> None:
    result = look_up(folder, "线程等待连接超时怎么办？")
    assert refs(result)[0].raw_path == "pool-zh.md#症状"


def test_an_obsolete_document_is_shown_and_marked(folder: Path) -> None:
    result = look_up(folder, "network partition timeouts")
    first = refs(result)[0]
    assert first.text.startswith("[OBSOLETE] RB-002 Network partition")
    assert (details(result).relevance_levels or ())[0] == "old.md#network-partition: high, obsolete"


def test_an_obsolete_document_counts_less_than_a_current_one(folder: Path) -> None:
    (folder / "new.md").write_text(OLD.replace("status: obsolete", "status: current"), encoding="utf-8")
    assert refs(look_up(folder, "network partition timeouts"))[0].raw_path.startswith("new.md#")


def test_the_result_says_which_documents_and_how_they_were_found(folder: Path) -> None:
    found = details(look_up(folder, "connection", limit=1))
    assert found.source_documents == ("leak.md",)
    assert found.order == "ranked"
    assert (found.matched or 0) > 1
    assert found.returned == 1
    assert "matching sections not shown" in (found.dropped_reason or "")


@pytest.mark.scenario("TRC-4")
def test_nothing_found_leaves_a_summary(folder: Path) -> None:
    result = look_up(folder, "zzzz qqqq")
    assert result.status == "no_data"
    assert refs(result)[0].text.startswith("hits=0 window=all status=ok documents=3 sections_scanned=")


def test_a_query_that_says_nothing_is_an_error(folder: Path) -> None:
    assert look_up(folder, "why is it").status == "error"


def test_every_section_is_found_in_the_full_output(folder: Path) -> None:
    tool = Runbooks([str(folder)])
    result = asyncio.run(tool.invoke({"query": "connection", "limit": 1}))
    assert tool.resolve(result.output or b"", refs(result)[0].raw_path) == refs(result)[0].text
    assert tool.resolve(result.output or b"", "old.md#network-partition") is not None


def test_headings_of_both_kinds_and_none_in_a_fence() -> None:
    text = "Watchdog\n \\#\n============\n\nAlways firing.\n\nImpact\n------\nNone.\n```\n# no heading\n```\n### Same\na b c\n### Same\nd e f\n"
    document = runbooks.read("w.md", text)
    assert [section.path for section in document.sections] == [
        "w.md#watchdog",
        "w.md#impact",
        "w.md#same",
        "w.md#same-2",
    ]
    assert "# no heading" in document.sections[1].raw


def test_bad_front_matter_is_noted_and_the_text_still_read() -> None:
    document = runbooks.read("x.md", "---\ntitle: [open\n---\n# Title\nsome text here\n")
    assert document.note is not None
    assert document.sections[0].heading == "Title"


@pytest.mark.parametrize("mark", ["obsolete: true", "status: 已废弃", "status: Deprecated"])
def test_a_document_that_says_it_no_longer_holds_is_obsolete(mark: str) -> None:
    assert runbooks.read("x.md", f"---\n{mark}\n---\n# T\ntext here\n").obsolete


def test_a_folder_without_documents_is_no_source(tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(b"x")
    with pytest.raises(BadSource, match=r"\.md"):
        Runbooks([str(tmp_path)])
