// An agent that asks, gathers evidence and answers by itself, and has its answer judged by Verdictlog before it speaks.
// Usage: node agent.mjs [--invent]      (NATS_URL, SESSION: see README.md)
import { connect } from "@nats-io/transport-node";
import { randomBytes } from "node:crypto";

const invent = process.argv.includes("--invent");
const server = process.env.NATS_URL ?? "nats://127.0.0.1:4222";
const now = new Date();
const epoch = `e${String(now.getUTCFullYear()).slice(2)}${String(now.getUTCMonth() + 1).padStart(2, "0")}`;
const session = process.env.SESSION ?? `${epoch}-js-${randomBytes(6).toString("hex")}`;

const nats = await connect({ servers: server });

/** One request of the intake; `id` makes it safe to send again after a time-out. */
async function request(type, body, timeout = 10_000) {
  const reply = (await nats.request(`vl-in.${session}.${type}`, JSON.stringify(body), { timeout })).json();
  if (reply.error) throw new Error(`${type}: ${reply.error.where}: ${reply.error.why}`);
  return reply;
}

// Your tools stand here. What they return is quotable line by line: lines[0], lines[1], ...
const tools = {
  query_metrics: () => 'hikaricp_connections_active{pool="payments-pool"} last=20 max=20',
  query_logs: () => "10:20:01 WARN payment-service HikariPool-1 connection leak detected: RefundJob",
};

await request("question-asked", { id: "ask", question: "Is payment-service out of connections?", repair_wait_s: invent ? 1 : 30 });
const calls = [
  { invocation_id: "call-1", tool_name: "query_metrics", arguments: { query: "hikaricp_connections_active" } },
  { invocation_id: "call-2", tool_name: "query_logs", arguments: { query: "payment-service" } },
];
for (const call of calls) {
  await request("tool-invoked", { id: call.invocation_id, ...call, output: tools[call.tool_name]() });
}

/** The answer with its claims, each bound to a line of a tool's output. */
function answer(excerpt) {
  const text = "payments-pool has 20 active connections of at most 20.";
  const binding = {
    tool_name: "query_metrics",
    source_invocation_id: "call-1",
    raw_path: "lines[0]",
    evidence_excerpt: excerpt,
  };
  const claim = {
    claim_id: "c1",
    claim_type: "observation",
    claim_text: text,
    support_level: "direct",
    evidence_bindings: [binding],
  };
  return { answer_version: "executor_evidence_v2", claims: [claim], user_facing_answer: `Yes: ${text}` };
}

const line = tools.query_metrics();
// The first draft miscopies a number, as models do. Told so, an honest agent quotes again; an inventing one does not.
await request("answer-drafted", { id: "draft-0", answer: answer(line.replace("last=20", "last=25")) });

let told = await request("await", { timeout_s: 60 }, 70_000);
if (told.state === "repair" && !invent) {
  console.error(`asked to mend: ${told.repair_request}`);
  await request("answer-drafted", { id: `draft-${told.attempt}`, answer: answer(line) });
}
if (told.state !== "answered") {
  told = await request("await", { timeout_s: 60, answer_only: true }, 70_000);
}

console.log(JSON.stringify({ session, verdict: told.effective_verdict, kind: told.response?.kind, text: told.response?.text }));
await nats.drain();
process.exit(told.exit_code ?? 1);
