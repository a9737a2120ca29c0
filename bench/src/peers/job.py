"""The job that all systems do: a scripted model that calls one tool in each of its turns.

A program is started with a directory and a mode, and does a job for each name that it reads. In the mode `hang`, a call in the middle
does not end until the process is killed. Prints a line at the first call, at the call that hangs, and at the end of each job.
"""

import sys
import time

TURNS = 20
DIRECTORY, MODE = sys.argv[1], sys.argv[2]
has_called = False


def say(line):
    print(line, flush=True)


def model(results):
    """Answers a conversation with this many results of calls: a call, or the end."""
    row = len(results)
    return {"text": f"Row {row} is next. " + "So it goes. " * 10, "row": row if row < TURNS else None}


def sew(row):
    """The tool."""
    global has_called
    with open(f"{DIRECTORY}/calls", "a") as calls:
        calls.write(f"{MODE} {row}\n")
    if not has_called:
        has_called = True
        say("call")
    if MODE == "hang" and row == TURNS // 2:
        say("hangs")
        time.sleep(3600)
    return f"Row {row} is sewn. " + "Stitch. " * 25


def names():
    return (line.strip() for line in sys.stdin)
