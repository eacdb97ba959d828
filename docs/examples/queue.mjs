// A worker of a share group (KIP-932) in Node, without packages: it prints the lines of text files.
//
//     KCOORD_TOKEN=… node queue.mjs DIRECTORY
//
// Partition 3 of topic `lines` is the file DIRECTORY/3.txt, and an offset is a line number. Any number of workers take
// lines of the same files, each line one of them. KCOORD_URL says where the service is; the topic has to exist:
// POST /v1/topics. Node 20.3 or newer.
import { randomUUID } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

const directory = process.argv[2];
const group = process.env.KCOORD_GROUP ?? "lines-nodequeue";
const url = `${process.env.KCOORD_URL ?? "http://127.0.0.1:8000"}/v1/groups/${encodeURIComponent(group)}`;
const topic = "lines";
const HELD_MS = 1_000; // how long an acquire waits for lines that others release; our own look at the files comes next
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
async function post(path, body) {
  try {
    const response = await fetch(`${url}/${path}`, {
      method: "POST",
      headers: { Authorization: `Bearer ${process.env.KCOORD_TOKEN}`, "Content-Type": "application/json" },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    if (response.ok) return await response.json();
    const problem = response.headers.get("content-type")?.includes("json") ? await response.json() : {};
    throw new Refused({ error: `HTTP ${response.status}`, action: "retry", ...problem }, response.headers.get("retry-after"));
  } catch (error) {
    if (error instanceof Refused) throw error;
    throw new Refused({ error: "no answer", detail: error.message, action: "retry" });
  }
}

const me = randomUUID(); // the member id: ours from the start, and kept when we join again
const stop = new AbortController();
let epoch = 0; // 0: not a member; the next heartbeat joins
let partitions = []; // what we are meant to work on; others may have the same
let lockMs = 30_000; // how long what we acquire is ours
const held = new Map(); // by lock: lines that we have and have not settled
let unsent = []; // what became of lines; sent with the next acquire

const tryAgain = (refused) => refused.action === "retry" || refused.action === "rediscover";
const isOut = (refused) => refused.action === "rejoin" || (refused.error === "GROUP_ID_NOT_FOUND" && epoch > 0);

/** Heartbeats until SIGTERM, and renewals: locks last while lines are worked on. */
async function heartbeats() {
  let renewedAt = Date.now();
  while (!stop.signal.aborted) {
    let waitMs;
    try {
      const names = epoch ? {} : { subscribed_topic_names: [topic] };
      const answer = await post("share-heartbeat", { member_id: me, member_epoch: epoch, client_id: "queue.mjs", ...names });
      ({ member_epoch: epoch, heartbeat_interval_ms: waitMs } = answer);
      if (answer.assignment) partitions = answer.assignment.topic_partitions.flatMap((entry) => entry.partitions);
      const items = [...held].map(([lock, lines]) => ({ lock, renew: lines.map((line) => [line, line]) }));
      if (items.length && Date.now() > renewedAt + lockMs / 3) {
        await post("settle", { member_id: me, items });
        renewedAt = Date.now();
      }
    } catch (refused) {
      if (isOut(refused)) epoch = 0; // the service has released what we had
      else if (!tryAgain(refused)) throw refused;
      say(`heartbeat: ${refused.message}; again`);
      waitMs = refused.waitMs;
    }
    await sleep(Math.min(waitMs, lockMs / 3), null, { signal: stop.signal }).catch(() => {});
  }
}

/** The complete lines of a file. */
async function read(partition) {
  const text = await readFile(join(directory, `${partition}.txt`), "utf8");
  return text.slice(0, text.lastIndexOf("\n") + 1).split("\n").slice(0, -1);
}

/** Settle what is done and acquire more; the locks. Settling twice in the same way does no harm. */
async function acquire() {
  const files = new Map(await Promise.all(partitions.map(async (partition) => [partition, await read(partition)])));
  const ends = [...files].map(([partition, lines]) => ({ topic, partition, end_offset: lines.length }));
  const wait = unsent.length ? 0 : HELD_MS;
  const body = { member_id: me, member_epoch: epoch, max_records: 100, max_wait_ms: wait, settle: unsent, ends };
  const answer = await post("acquire", body);
  note(answer.settled);
  lockMs = answer.lock_ms;
  for (const lock of answer.locks) {
    held.set(lock.lock, lock.offsets.flatMap(([first, last]) => Array.from({ length: last - first + 1 }, (_, n) => first + n)));
  }
  // A line that another worker saw may be too new for the files that we have just read.
  for (const { partition } of answer.locks) files.set(partition, await read(partition));
  return answer.locks.map((lock) => ({ ...lock, file: files.get(lock.partition) }));
}

function note(settled) {
  for (const result of settled) if (result.error_code) say(`lock ${result.lock} was lost: ${result.why}`);
  unsent = [];
}

/** Work on the lines of a lock. What is not begun when SIGTERM comes is handed back, to be taken at once. */
function work({ lock, partition, file }) {
  const mine = held.get(lock);
  while (mine.length && !stop.signal.aborted) {
    const line = mine[0];
    try {
      if (line >= file.length) throw new Error("no such line");
      process.stdout.write(`${partition} ${line} ${file[line]}\n`); // the work
      unsent.push({ lock, accept: [[line, line]] });
    } catch (error) {
      unsent.push({ lock, release: [[line, line]], error: error.message }); // comes again after the group's back-off
    }
    mine.shift();
  }
  if (mine.length) unsent.push({ lock, release: mine.map((line) => [line, line]), delay_ms: 0 });
  held.delete(lock);
}

async function run() {
  while (!stop.signal.aborted) {
    try {
      const locks = epoch ? await acquire() : [];
      for (const lock of locks) work(lock);
      if (!locks.length) await sleep(100);
    } catch (refused) {
      if (!isOut(refused) && !tryAgain(refused)) throw refused; // the next heartbeat finds out what happened to us
      say(`acquire: ${refused.message}; again`);
      await sleep(refused.waitMs, null, { signal: stop.signal }).catch(() => {});
    }
  }
}

for (const signal of ["SIGTERM", "SIGINT"]) process.on(signal, () => stop.abort());
const beating = heartbeats();
beating.catch(() => stop.abort());
try {
  await run();
} finally {
  stop.abort();
  if (unsent.length) note((await post("settle", { member_id: me, items: unsent })).items);
  // Leave: what we may still have is released at once, not when its lock ends.
  if (epoch > 0) await post("share-heartbeat", { member_id: me, member_epoch: -1 }).catch((refused) => say(`leave: ${refused.message}`));
  say("left");
}
await beating; // its failure, if there was one, ends the process with status 1
