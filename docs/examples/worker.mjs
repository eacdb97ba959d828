// A worker in Node, in the consumer protocol (KIP-848), without packages: it prints the lines of text files.
//
//     KCOORD_TOKEN=… node worker.mjs DIRECTORY
//
// Partition 3 of topic `lines` is the file DIRECTORY/3.txt, and an offset is a line number. Any number of workers share
// the files. KCOORD_URL says where the service is; the topic has to exist: POST /v1/topics. Node 20.3 or newer.
import { randomUUID } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

const directory = process.argv[2];
const group = process.env.KCOORD_GROUP ?? "lines-node";
const url = `${process.env.KCOORD_URL ?? "http://127.0.0.1:8000"}/v1/groups/${encodeURIComponent(group)}`;
const topic = "lines";
const BATCH = 20; // lines of a partition between two commits
const TIMEOUT_MS = 10_000; // how long an answer may take

const say = (text) => process.stderr.write(`${text}\n`);

/** An answer that is not a success. `action` says what to do next. */
class Refused extends Error {
  constructor(problem, retryAfter) {
    super(`${problem.error}: ${problem.detail}`);
    this.error = problem.error;
    this.action = problem.action;
    this.waitMs = 1000 * (Number(retryAfter) || 1);
  }
}

/** POST; the answer's body. Throws Refused, with action `retry` where nothing, or only a proxy, answered. */
async function post(path, body, { timeoutMs = TIMEOUT_MS, signal } = {}) {
  const timeout = AbortSignal.timeout(timeoutMs);
  try {
    const response = await fetch(`${url}/${path}`, {
      method: "POST",
      headers: { Authorization: `Bearer ${process.env.KCOORD_TOKEN}`, "Content-Type": "application/json" },
      body: JSON.stringify(body),
      signal: signal ? AbortSignal.any([signal, timeout]) : timeout,
    });
    if (response.ok) return await response.json();
    const problem = response.headers.get("content-type")?.includes("json") ? await response.json() : {};
    throw new Refused({ error: `HTTP ${response.status}`, action: "retry", ...problem }, response.headers.get("retry-after"));
  } catch (error) {
    if (error instanceof Refused) throw error;
    throw new Refused({ error: "no answer", detail: error.message, action: "retry" });
  }
}

// What the heartbeats and the work share.
const me = randomUUID(); // the member id: ours from the start, and kept when we join again
const stop = new AbortController();
let epoch = 0; // 0: not a member; the next heartbeat joins
let owned = new Map(); // our partitions -> the next line of each
let topicId = null; // of these partitions: a topic that is created again has its name, but not its id
let assigned = null; // a new assignment, { topicId, partitions }, that the work has not taken over yet
let applied = 0; // how many assignments it took over; the next heartbeat reports the last of them
let wake = () => {}; // ends the nap of the heartbeats

/** Wait, unless `wake` is called or SIGTERM comes. */
function nap(ms) {
  return new Promise((resolve) => {
    const timer = setTimeout(() => wake(), ms);
    wake = () => {
      clearTimeout(timer);
      resolve();
    };
  });
}

/** Heartbeats, from the join to SIGTERM; they go on while lines are processed. */
async function heartbeats() {
  let full = true; // say everything: when joining, and after a failure
  let reported = 0; // the assignment that the service knows we took over
  let intervalMs = 0;
  while (!stop.signal.aborted) {
    const version = applied;
    const heldMs = full || version > reported || assigned ? 0 : intervalMs;
    const body = { member_id: me, member_epoch: epoch, max_wait_ms: heldMs };
    if (full) Object.assign(body, { client_id: "worker.mjs", rebalance_timeout_ms: 60_000, subscribed_topic_names: [topic] });
    if (full || version > reported) {
      // Also what we may take over before the answer: what is not listed may be given to others.
      const held = !assigned || assigned.topicId === topicId ? [...owned.keys()] : [];
      const partitions = [...new Set([...held, ...(assigned?.partitions ?? [])])];
      body.topic_partitions = partitions.length ? [{ topic_id: assigned?.topicId ?? topicId, partitions }] : [];
    }
    try {
      // An answer that takes longer is not waited for: there must be time for another attempt within the session.
      const timeoutMs = intervalMs ? heldMs + Math.max(intervalMs, 3_000) : TIMEOUT_MS;
      const answer = await post("consumer-heartbeat", body, { timeoutMs, signal: stop.signal });
      ({ member_epoch: epoch, heartbeat_interval_ms: intervalMs } = answer);
      full = false;
      reported = version;
      if (answer.assignment) {
        const [entry] = answer.assignment.topic_partitions.filter((entry) => entry.topic === topic);
        assigned = { topicId: entry?.topic_id ?? topicId, partitions: entry?.partitions ?? [] };
      }
    } catch (refused) {
      if (stop.signal.aborted) return;
      full = true;
      await recover(refused);
    }
    // The next heartbeat reports the new assignment; while the work has not got there, plain ones keep us alive.
    if (assigned && !stop.signal.aborted) await nap(intervalMs);
  }
}

/** A heartbeat failed. Returns when to send another one; throws where that is of no use. */
async function recover(refused) {
  const deleted = ["GROUP_ID_NOT_FOUND", "UNKNOWN_TOPIC_ID", "UNKNOWN_TOPIC_OR_PARTITION"].includes(refused.error);
  if (refused.action === "rejoin" || (deleted && epoch > 0)) {
    say(`${refused.message}; lost [${[...owned.keys()]}], joining again`);
    owned = new Map(); // others may have them: no commit
    assigned = null;
    epoch = 0;
  } else if (refused.action === "retry" || refused.action === "rediscover") {
    say(`heartbeat: ${refused.message}; again`);
    await sleep(refused.waitMs);
  } else {
    throw refused;
  }
}

/** Take over a new assignment. All that was processed is committed here: what is not listed is given up. */
async function takeOver() {
  const taken = assigned;
  const kept = taken.topicId === topicId ? owned : []; // offsets of another topic of this name mean nothing here
  const next = new Map([...kept].filter(([partition]) => taken.partitions.includes(partition)));
  const added = taken.partitions.filter((partition) => !next.has(partition));
  for (const [partition, offset] of await committed(taken.topicId, added)) next.set(partition, offset);
  if (assigned !== taken) return; // lost, or newer, meanwhile
  owned = next;
  topicId = taken.topicId;
  assigned = null;
  say(`assigned: [${[...owned.keys()]}]`);
  applied += 1;
  wake();
}

/** Where to go on with these partitions. */
async function committed(id, partitions) {
  if (!partitions.length) return [];
  const body = { topics: [{ topic_id: id, partitions }], require_stable: true };
  const answer = await post("offsets/fetch", body);
  return answer.topics[0].partitions.map((found) => {
    // UNKNOWN_TOPIC_ID: the topic is gone, and the next assignment says so.
    if (found.error_code) throw new Refused({ error: found.error, action: "retry" });
    return [found.partition, Math.max(0, found.committed_offset)]; // -1: nothing committed yet
  });
}

/** Process the next lines of a partition and commit; the number of lines. */
async function work(partition) {
  const mine = owned; // another map once the partitions were lost
  const from = mine.get(partition);
  const text = await readFile(join(directory, `${partition}.txt`), "utf8");
  const lines = text.slice(0, text.lastIndexOf("\n") + 1).split("\n").slice(0, -1).slice(from, from + BATCH);
  lines.forEach((line, index) => process.stdout.write(`${partition} ${from + index} ${line}\n`)); // the work
  if (lines.length && (await commit(mine, partition, from + lines.length))) mine.set(partition, from + lines.length);
  return lines.length;
}

/** Commit until it is stored; false if the group went on without us: the next heartbeat says so. */
async function commit(mine, partition, offset) {
  const topics = [{ topic_id: topicId, partitions: [{ partition, committed_offset: offset }] }];
  for (let attempt = 1; owned === mine; attempt++) {
    try {
      // The epoch is read again for each attempt: STALE_MEMBER_EPOCH means that a heartbeat has just changed it.
      const answer = await post("offsets/commit", { member_id: me, generation_id_or_member_epoch: epoch, topics });
      const result = answer.topics[0].partitions[0];
      if (result.error === "UNKNOWN_TOPIC_ID") {
        say(`partition ${partition}: its topic is gone; the next assignment says what comes instead`);
        mine.delete(partition);
        return false;
      }
      if (result.error_code) throw new Refused({ error: result.error, detail: `partition ${partition}`, action: "stop" });
      return true;
    } catch (refused) {
      if (refused.action === "rejoin") return false;
      if (refused.action !== "retry" || (stop.signal.aborted && attempt >= 3)) throw refused;
      say(`commit: ${refused.message}; again`);
      await sleep(refused.error === "STALE_MEMBER_EPOCH" ? 50 : refused.waitMs);
    }
  }
  return false;
}

/** The work, until SIGTERM. */
async function run() {
  while (!stop.signal.aborted) {
    let lines = 0;
    for (const partition of [...owned.keys()]) {
      if (assigned || stop.signal.aborted) break;
      if (owned.has(partition)) lines += await work(partition);
    }
    try {
      if (assigned) await takeOver();
    } catch (refused) {
      if (refused.action !== "retry") throw refused;
      await sleep(refused.waitMs);
    }
    if (!lines) await sleep(100);
  }
}

stop.signal.addEventListener("abort", () => wake());
for (const signal of ["SIGTERM", "SIGINT"]) process.on(signal, () => stop.abort());
const beating = heartbeats();
beating.catch(() => stop.abort());
try {
  await run(); // a batch that was begun is committed
} finally {
  stop.abort();
  // Leave: the others get our partitions at once, not when our session ends.
  if (epoch > 0) await post("consumer-heartbeat", { member_id: me, member_epoch: -1 }).catch((refused) => say(`leave: ${refused.message}`));
  say("left");
}
await beating; // its failure, if there was one, ends the process with status 1
