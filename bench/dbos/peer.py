"""What the group `fleet` measures, by DBOS in Python.

    python peer.py ADDRESS SCHEMA worker | busy | enqueue | steps WORKFLOWS BYTES SECONDS | claims

`worker`, `busy` and `enqueue` print the lines that `src/fleet/processes.rs` describes, and end when their input ends. `steps` and `claims` print
lines of JSON. A session is a workflow of three steps: a request to the model, a call, and another request. A worker looks at its queue once a
second, which is the default; also while there is work, so a `busy` one, which may have 50 sessions at a time, looks every 50 ms. `src/main.rs` has the
same roles in Rust.
"""

import json
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from dbos import DBOS, DBOSClient

QUEUE = "sessions"
# As many as Backstitch enqueues at a time, and as its workers take at a time.
CONCURRENCY = 8
WORKERS = 8
CLAIMS = 100

address, schema, role = sys.argv[1:4]
numbers = [int(number) for number in sys.argv[4:]]


def say(word, session):
    sys.stdout.write(f"{word} {session} {time.time_ns()}\n")
    sys.stdout.flush()


@DBOS.step()
def request(turn):
    if turn == 1:
        say("first", DBOS.workflow_id)
        return {"text": "First a stitch.", "call": "stitch"}
    return {"text": "Mended."}


@DBOS.step()
def stitch():
    return "stitched"


@DBOS.workflow()
def session(mission):
    request(1)
    stitch()
    request(2)
    say("rested", DBOS.workflow_id)
    return "Mended."


@DBOS.step()
def store(text):
    return text


@DBOS.workflow()
def steps(end, text):
    count = 0
    while time.time() < end:
        store(text)
        count += 1
    return count, time.time()


def launch(pool=20):
    config = {
        "name": "fleet",
        "system_database_url": address,
        "dbos_system_schema": schema,
        "application_version": "1",
        "sys_db_pool_size": pool,
        "log_level": "ERROR",
        "enable_otlp": False,
    }
    DBOS(config=config)
    DBOS.launch()


def work(**limits):
    launch()
    DBOS.register_queue(QUEUE, on_conflict="always_update", **limits)
    say("ready", "-")
    sys.stdin.read()
    # Nothing runs any more, and its own end takes seconds.
    os._exit(0)


def enqueue():
    client = DBOSClient(system_database_url=address, dbos_system_schema=schema)
    options = {"queue_name": QUEUE, "workflow_name": session.__qualname__}

    def one(_):
        began = time.time_ns()
        handle = client.enqueue(options, "Mend the coat.")
        sys.stdout.write(f"enqueued {handle.workflow_id} {began}\n")
        sys.stdout.flush()

    say("ready", "-")
    with ThreadPoolExecutor(CONCURRENCY) as pool:
        for line in sys.stdin:
            list(pool.map(one, range(int(line))))


def measure_steps(workflows, size, seconds):
    # Some connections are for its own threads.
    launch(pool=workflows + 4)
    began = time.time()
    handles = [DBOS.start_workflow(steps, began + seconds, "x" * size) for _ in range(workflows)]
    results = [handle.get_result() for handle in handles]
    elapsed = max(ended for _, ended in results) - began
    print(json.dumps({"rate": sum(count for count, _ in results) / elapsed}), flush=True)
    DBOS.destroy()


def measure_claims():
    """Claims by the function that DBOS's own loop calls, from as many threads as there are workers of Backstitch."""
    launch(pool=WORKERS + 4)
    queue = DBOS.register_queue("long", worker_concurrency=CONCURRENCY, polling_interval_sec=3600)
    print(json.dumps({"ready": True}), flush=True)
    sys.stdin.readline()
    from dbos._dbos import _get_dbos_instance

    database = _get_dbos_instance()._sys_db

    def claim(worker):
        times, claimed = [], 0
        for _ in range(CLAIMS):
            began = time.perf_counter()
            found, _ = database.start_queued_workflows(queue, f"bench-{worker}", "1", None)
            times.append((time.perf_counter() - began) * 1e3)
            claimed += len(found)
        return times, claimed

    began = time.perf_counter()
    with ThreadPoolExecutor(WORKERS) as pool:
        done = list(pool.map(claim, range(WORKERS)))
    elapsed = time.perf_counter() - began
    claimed = sum(claimed for _, claimed in done)
    times = sorted(time for times, _ in done for time in times)
    found = {
        "workers": WORKERS,
        "batch": CONCURRENCY,
        "claimed": claimed,
        "rate": claimed / elapsed,
        "p50": times[len(times) // 2],
        "p99": times[len(times) * 99 // 100],
    }
    print(json.dumps(found), flush=True)
    DBOS.destroy()


if role == "worker":
    work()
elif role == "busy":
    work(worker_concurrency=50, polling_interval_sec=0.05)
elif role == "enqueue":
    enqueue()
elif role == "steps":
    measure_steps(*numbers)
else:
    measure_claims()
