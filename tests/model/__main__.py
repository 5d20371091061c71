"""`make test-model`: two questions about the bundled incident, answered to their verdicts by a real small model.

The verdict itself is the model's business: a small one is seldom right. What must hold is that each turn ends in a
judgement, and that only an answer whose bindings the gate found is let through.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from handlers.demo.incident import Incident, generate
from tests.model.recorder import Exchange, recording

HERE = Path(__file__).parent
MODEL = "qwen2.5-coder-1.5b-instruct"
TURNS = (("en", "Why does payment-service time out?"), ("zh-CN", "payment-service 为什么超时？"))
# A busy core reads some five tokens a second and writes one or two.
BOUNDS = {
    "VERDICTLOG_MODEL": MODEL,
    "VERDICTLOG_DEADLINE_S": "5400",
    "VERDICTLOG_REQUEST_TIMEOUT_S": "1800",
    "VERDICTLOG_MAX_TOKENS": "700",
    "VERDICTLOG_EVIDENCE_CHARS": "4000",
    "VERDICTLOG_MAX_ATTEMPTS": "1",
}
VERDICT_CODES = frozenset({0, 10, 20})


@contextmanager
def served(home: Path, weights: Path, threads: int, log: Path) -> Iterator[str]:
    """The address of a llama.cpp server, which ends with the block."""
    command = [home / "bin" / "python", HERE / "serve.py", weights, "--alias", MODEL]
    command += ["--context", "8192", "--threads", str(threads)]
    # Threads that spin while they wait for one another would take the cores from all else on the machine.
    env = {**os.environ, "OMP_WAIT_POLICY": "passive"}
    with log.open("wb") as told:
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=told, text=True, env=env
        )
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            address = process.stdout.readline().strip()
            if not address:
                raise SystemExit(f"test-model: the server did not start: {log.read_text(errors='replace')[-500:]}")
            yield address
        finally:
            process.stdin.close()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def asked(question: str, lang: str, incident: Incident, base_url: str, data: Path) -> tuple[int, str, str]:
    """Exit code, output and errors of `verdictlog ask --json`."""
    command = [sys.executable, "-m", "handlers.cli.main", "ask", question, "--lang", lang, "--agents", "openai"]
    command += ["--logs", str(incident.logs), "--metrics", str(incident.metrics), "--json", "--data", str(data)]
    mine = {key: value for key, value in os.environ.items() if not key.startswith(("VERDICTLOG_", "OPENAI_", "NATS_"))}
    env = {**mine, **BOUNDS, "OPENAI_BASE_URL": base_url, "OPENAI_API_KEY": "none"}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def faults(code: int, output: str) -> list[str]:
    """What must not be, however bad the model is."""
    if code not in VERDICT_CODES:
        return [f"exit code {code} is no verdict"]
    judged: dict[str, Any] | None = json.loads(output)["verifier_evaluation"]
    if judged is None:
        return ["the turn ended without a judgement"]
    bound = [binding["status"] == "pass" for binding in judged["gatekeeper_result"]["checked_bindings"]]
    passed = judged["effective_verdict"] == "PASS"
    return ["PASS without a verified binding"] if passed and not (bound and all(bound)) else []


def told(exchange: Exchange) -> str:
    """One line about an exchange: the role, its tokens, seconds, and how it ended."""
    reply = exchange["reply"]
    role = exchange["request"]["messages"][0]["content"].split("\n", 1)[0].removeprefix("# ").lower()
    if "choices" not in reply:
        return f"  {role}: status {exchange['status']}, {str(reply)[:200]}"
    usage, choice = reply["usage"], reply["choices"][0]
    level = (exchange["request"].get("response_format") or {"type": "prompt"})["type"]
    calls = len(choice["message"].get("tool_calls") or ())
    return (
        f"  {role}: {usage['prompt_tokens']}+{usage['completion_tokens']} tokens in {exchange['seconds']} s, {level}, "
        f"{choice['finish_reason']}{f', {calls} calls' if calls else ''}"
    )


def main() -> int:
    options = argparse.ArgumentParser(prog="make test-model")
    options.add_argument("--home", type=Path, default=Path(".venv-model"), help="the environment of the server")
    options.add_argument("--weights", type=Path, help="another GGUF file than the packages' own")
    options.add_argument("--keep", type=Path, help="folder for the exchanges, the log and the server's words")
    options.add_argument("--threads", type=int, default=2)
    options.add_argument("--lang", choices=[lang for lang, _ in TURNS], help="only this turn")
    given = options.parse_args()
    failed = False
    with tempfile.TemporaryDirectory() as scratch:
        folder: Path = given.keep or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        incident = generate(folder / "incident")
        weights = given.weights or given.home / "model.gguf"
        with (
            served(given.home, weights, given.threads, folder / "server.log") as address,
            recording(address, folder) as (base_url, exchanges),
        ):
            for lang, question in TURNS:
                if given.lang not in {None, lang}:
                    continue
                before = len(exchanges)
                code, output, errors = asked(question, lang, incident, base_url, folder / "data")
                (folder / f"turn-{lang}.json").write_text(output, encoding="utf-8")
                print(f"{question} ({weights.name})", *map(told, exchanges[before:]), sep="\n")
                if code in VERDICT_CODES:
                    report = json.loads(output)
                    failed_rules = (report["gatekeeper_result"] or {}).get("failed_rules")
                    said = json.dumps(report["response"], ensure_ascii=False)
                    print(f"  {report['effective_verdict']}, failed rules {failed_rules}, {said[:300]}")
                wrong = faults(code, output)
                failed = failed or bool(wrong)
                print(*(f"  FAILED: {why} {errors[-300:]}" for why in wrong), sep="\n")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
