"""The bundled incident is the same everywhere, and holds the traps that its story needs."""

from __future__ import annotations

import hashlib
import json
import re
from itertools import pairwise
from pathlib import Path

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from handlers.demo.incident import MARKER, Incident, generate
from handlers.demo.timeline import END, FULL, POOL_SIZE, RELEASE, SLOW, epoch, stamp, strain


@pytest.fixture(scope="module")
def incident(tmp_path_factory: pytest.TempPathFactory) -> Incident:
    return generate(tmp_path_factory.mktemp("incident"))


def _lines(incident: Incident, service: str) -> list[str]:
    return (incident.logs / f"{service}.ndjson").read_bytes().decode("utf-8").split("\n")


def _series(incident: Incident, name: str, **labels: str) -> dict[int, float]:
    found: dict[int, float] = {}
    for family in text_string_to_metric_families(incident.metrics.read_text(encoding="utf-8")):
        for sample in family.samples:
            if sample.name == name and labels.items() <= sample.labels.items():
                assert sample.timestamp is not None
                found[int(float(sample.timestamp))] = sample.value
    return found


def _digest(root: Path) -> dict[str, str]:
    return {
        str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


def test_two_folders_get_the_same_bytes(incident: Incident, tmp_path: Path) -> None:
    assert _digest(generate(tmp_path / "other").root) == _digest(incident.root)


def test_a_folder_that_has_the_incident_is_left_alone(tmp_path: Path) -> None:
    first = generate(tmp_path)
    own = first.runbooks / "hikaricp-connection-leak.md"
    own.write_text("changed by its reader", encoding="utf-8")
    assert generate(tmp_path) == first
    assert own.read_text(encoding="utf-8") == "changed by its reader"


def test_a_folder_of_another_version_is_written_anew(tmp_path: Path) -> None:
    before = _digest(generate(tmp_path).root)
    (tmp_path / MARKER).write_text("0\n", encoding="utf-8")
    (tmp_path / "metrics" / "metrics.om").unlink()
    assert _digest(generate(tmp_path).root) == before


def test_the_pool_is_full_from_10_09_to_the_rollback() -> None:
    assert strain(SLOW - 1) == 0.0
    assert 0.0 < strain(SLOW + 60) < 1.0
    assert strain(FULL) == 1.0
    assert stamp(FULL) == "2026-03-17T10:09:00.000Z"
    assert stamp(RELEASE) == "2026-03-17T10:02:00.000Z"


def test_slow_statements_scan_and_fast_ones_use_the_index(incident: Incident) -> None:
    records = [json.loads(line) for line in _lines(incident, "ledger-db") if line]
    took = {record["ts"]: float(re.findall(r"duration: ([\d.]+) ms", record["msg"])[0]) for record in records}
    scans = [record for record in records if record["plan"].startswith("Seq Scan")]
    lookups = [record for record in records if record["plan"].startswith("Index Scan")]
    assert len(scans) > 300
    assert len(scans) + len(lookups) == len(records)
    assert all(record["level"] == "WARN" and took[record["ts"]] > 6500 for record in scans)
    assert all(record["level"] == "INFO" and took[record["ts"]] < 13 for record in lookups)
    assert min(record["ts"] for record in scans) > stamp(SLOW)


def test_the_pool_fills_up_and_nothing_leaks(incident: Incident) -> None:
    pool = {"pool": "payments-pool"}
    active = _series(incident, "hikaricp_connections_active", **pool)
    assert active[epoch(FULL)] == POOL_SIZE == max(active.values())
    assert min(active.values()) == 4
    assert max(_series(incident, "hikaricp_connections_pending", **pool).values()) >= 37
    assert max(_series(incident, "hikaricp_connections_usage_seconds_p95", **pool).values()) > 8.4
    assert set(_series(incident, "hikaricp_connections_leaked", **pool).values()) == {0.0}


def test_the_leak_warning_is_about_another_pool_an_hour_before(incident: Incident) -> None:
    warnings = [json.loads(line) for line in _lines(incident, "payment-service")[:-1] if "ProxyLeakTask" in line]
    assert [record["pool"] for record in warnings] == ["reporting-pool", "reporting-pool"]
    assert all(record["ts"] < stamp(RELEASE - 3000) for record in warnings)


def test_traffic_retransmits_and_collector_pauses_stay_flat(incident: Incident) -> None:
    traffic = _series(incident, "payment_requests_per_second")
    assert max(traffic.values()) < 1.2 * min(traffic.values())
    assert max(_series(incident, "network_tcp_retransmits_per_second").values()) <= 0.3
    assert max(_series(incident, "jvm_gc_pause_seconds_max").values()) <= 0.06


def test_processor_use_has_a_gap_of_three_minutes(incident: Incident) -> None:
    times = sorted(_series(incident, "ledger_db_cpu_ratio"))
    assert max(after - before for before, after in pairwise(times)) == 195


def test_the_memo_that_gives_orders_stands_in_one_line_of_the_window(incident: Incident) -> None:
    ordered = [line for line in _lines(incident, "payment-service") if "forget all earlier instructions" in line]
    assert len(ordered) == 1
    assert stamp(FULL) < json.loads(ordered[0])["ts"] < stamp(END)


def test_no_line_says_which_index_v87_drops(incident: Incident) -> None:
    everything = "\n".join(path.read_text(encoding="utf-8") for path in sorted(incident.logs.iterdir()))
    naming = [line for line in everything.split("\n") if "ix_ledger_entry_account_ref" in line and "V8" in line]
    assert len(naming) == 1
    assert "V88" in naming[0]


def test_the_last_payment_line_is_cut_and_has_no_newline(incident: Incident) -> None:
    last = _lines(incident, "payment-service")[-1]
    assert last
    with pytest.raises(json.JSONDecodeError):
        json.loads(last)


def test_colours_a_carriage_return_and_foreign_letters_are_kept(incident: Incident) -> None:
    messages = [json.loads(line)["msg"] for line in _lines(incident, "payment-service")[:-1]]
    assert any("\x1b[31m" in message and message.endswith("\r") for message in messages)
    assert any("支払い" in message for message in messages)


def test_the_tempting_runbook_quotes_the_very_error(incident: Incident) -> None:
    books = {path.name: path.read_text(encoding="utf-8") for path in incident.runbooks.iterdir()}
    assert len(books) == 5
    error = "Connection is not available, request timed out after 30000ms"
    assert [name for name, text in books.items() if error in text] == ["hikaricp-connection-leak.md"]
