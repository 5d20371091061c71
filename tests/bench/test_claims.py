"""Bar J5 as a check: where the sets are, every bar holds; where they are not, the bench says so."""

from __future__ import annotations

import pytest

from tests.bench.claims import run


def test_absent_sets_are_not_measured(monkeypatch: pytest.MonkeyPatch, tmp_path: pytest.TempPathFactory) -> None:
    monkeypatch.setenv("VERDICTLOG_BENCH_DATA", str(tmp_path))
    rows = run()["rows"]
    assert len(rows) == 4
    assert all(row["value"] is None and "not measured" in row["note"] for row in rows)
