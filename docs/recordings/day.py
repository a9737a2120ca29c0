"""A day at the terminal: the transcripts of docs/guides/terminal.md.

A transcript is the ```text block after a line `<!-- NAME -->`. What differs from run to run (ids, times, sizes) is left as it
stands in the guide as long as the rest is the same.
"""
import contextlib
import difflib
import json
import re
import struct
import subprocess
import sys
import zlib
from pathlib import Path

from terminal import Terminal

GUIDE = Path(__file__).resolve().parent.parent / "guides" / "terminal.md"
PLAN, ASK, AUTO = "plan> ", "ask> ", "> "
SHIFT_TAB, ESC, CTRL_D = "\x1b[Z", "\x1b", "\x04"

SETTINGS = """\
model = "scripted:{home}/tailor.json"

[prices."scripted:{home}/tailor.json"]
input = 3
output = 15

[windows]
"scripted:{home}/tailor.json" = 200_000
"""

# What a model would answer. The place in the list is the number of answers of the session before it.
MORNING = [
    ("I write down the stock.", ("write_file", {"path": "stock.txt", "text": "beads: 12\nbuttons: 40\nneedles: 7\n"})),
    ("Now the report.", ("shell", {"command": "head -n 1 stock.txt > report.txt; sleep 5; tail -n +2 stock.txt >> report.txt"})),
    ("The report lists 3 kinds of goods.", None),
    ("Nearly. The picture shows:\n\n| goods | stock.txt | shelf |\n|---|---|---|\n| beads | 12 | 12 |\n| buttons | 40 | **38** |\n| needles | 7 | 7 |\n", None),
    ("I correct the buttons.", ("edit_file", {"path": "stock.txt", "old": "buttons: 40", "new": "buttons: 38"})),
    ("`stock.txt` has 38 buttons now.", None),
    ("I would begin like this.", ("write_file", {"path": "drawers.txt", "text": "thread: 4\n"})),
    ("The mode allows no changes, so here is the plan:\n\n1. List what is in each drawer in `drawers.txt`.\n2. Add the sums to `stock.txt`.\n", None),
    ("Yes: three kinds, three lines.", None),
    ("I count them.", ("shell", {"command": "sleep 3; wc -l < stock.txt"})),
    ("Three kinds. Of needles alone there are 7.", None),
    ("I count once more, slowly.", ("shell", {"command": "echo counting > count.log; sleep 60"})),
    ("`stock.txt` has no bugs; it has no unit either: add `pieces`.", None),
    ("There is a skill for that.", ("load_skill", {"name": "hem"})),
    ("Fold twice, 2 cm each, and sew along the inner fold.", None),
    # The summary.
    ("Stock was taken: 12 beads, 38 buttons (corrected after a look at the shelf), 7 needles. Open: the plan for the drawers.", None),
]
AFTERNOON = [
    ("The warehouse has 30 spools of linen thread.", None),
    ("I look it up.", ("fetch", {"url": "https://linen.example/prices"})),
    ("Then I leave the price open.", None),
    ("I write the order.", ("shell", {"command": "echo 'linen: 10 spools' > order.txt; sleep 5; echo 'needles: 20' >> order.txt"})),
    ("`order.txt` has 10 spools and 20 needles.", None),
]
MILL = [("I order it.", ("shell", {"command": "./order flour 50"}))]
REVIEW = """\
---
description: Review a file
argument-hint: [file]
---
Review @$1. Name bugs first, then what is hard to read.
"""
HEM = """\
---
name: hem
description: How to hem a cloth. Use it for every seam at an edge.
---
Fold twice, 2 cm each. Sew along the inner fold.
"""
SERVER = '''\
import json, sys

RESOURCE = {"uri": "stock://thread", "name": "thread", "description": "Thread in the warehouse"}
for line in sys.stdin:
    message = json.loads(line)
    method, params = message.get("method"), message.get("params", {})
    if method == "initialize":
        result = {"protocolVersion": params["protocolVersion"], "capabilities": {"resources": {}, "tools": {}},
                  "serverInfo": {"name": "warehouse", "version": "1"}}
    elif method == "resources/list":
        result = {"resources": [RESOURCE]}
    elif method == "resources/read":
        result = {"contents": [{"uri": "stock://thread", "mimeType": "text/plain", "text": "linen: 30 spools"}]}
    elif method == "tools/list":
        result = {"tools": [{"name": "order", "description": "Orders goods.", "inputSchema": {"type": "object"}}]}
    else:
        result = {}
    if "id" in message:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
'''


def picture():
    """A small PNG image."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows = b"".join(b"\0" + bytes([200, 180, 140]) * 8 for _ in range(8))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 8, 8, 8, 2, 0, 0, 0)) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def script(replies):
    """A script with these replies, as JSON."""
    listed = []
    for number, (text, call) in enumerate(replies):
        reply = {"text": text, "usage": {"input_tokens": 2400 + 130 * number, "output_tokens": 20 + len(text) // 4}}
        if call:
            name, arguments = call
            reply["call"] = [{"name": name, "arguments": arguments}]
        listed.append(reply)
    return json.dumps({"reply": listed})


class Day:
    def __init__(self, terminal):
        self.terminal, self.transcripts = terminal, {}

    @contextlib.contextmanager
    def transcript(self, name, prompt="$ "):
        """Keeps what is shown from the prompt at the beginning to that at the end."""
        terminal = self.terminal
        terminal.until(lambda: terminal.page.text(terminal.page.row) in ("$", "plan>", "ask>", ">"), "a prompt")
        first = terminal.page.row
        yield
        terminal.ready(prompt)
        self.transcripts[name] = terminal.page.text(first, terminal.page.row) + "\n"

    def say(self, text, prompt, wait=None):
        self.terminal.type(text, prompt)
        if wait:
            self.terminal.wait(wait)


def play(terminal):
    day, home = Day(terminal), terminal.home
    shop = home / "shop"
    terminal.write("shop/shelf.png", picture())
    terminal.write("shop/.git/HEAD", "ref: refs/heads/main\n")
    terminal.write(".config/backstitch/config.toml", SETTINGS.format(home=home))
    terminal.write(".config/backstitch/commands/review.md", REVIEW)
    terminal.write(".config/backstitch/skills/hem/SKILL.md", HEM)
    terminal.write("warehouse.py", SERVER)

    # The evening before: the machine stops in the middle of a command.
    terminal.write("tailor.json", script(MORNING))
    evening = subprocess.Popen([terminal.place / "bin" / "backstitch", "run", "Take stock", "--no-input"], cwd=shop,
                               env=terminal.environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    report = shop / "report.txt"
    terminal.open("shop")
    terminal.until(lambda: report.exists() and report.stat().st_size, "half of the report")
    evening.kill()
    evening.wait()

    with day.transcript("morning", AUTO):
        terminal.type("backstitch -c")
        terminal.wait("[Y/n]")
        terminal.press("\r")
        terminal.wait("turn 1")
    with day.transcript("ask", AUTO):
        day.say("Does @stock.txt match the shelf in @shelf.png?", AUTO, "turn 2")
    with day.transcript("edit", ASK):
        day.say("/mode ask", AUTO)
        day.say("Correct it", ASK, "allow it?")
        terminal.press("y\r")
        terminal.wait("turn 3")
    with day.transcript("plan", AUTO):
        terminal.press(SHIFT_TAB)
        terminal.ready(AUTO)
        terminal.press(SHIFT_TAB)
        day.say("How would you count the drawers?", PLAN, "turn 4")
        day.say("/mode auto", PLAN)
    with day.transcript("person", AUTO):
        day.say("!wc -l stock.txt", AUTO, "the next message takes")
        day.say("Is that all?", AUTO, "turn 5")
    with day.transcript("ahead", AUTO):
        day.say("Count everything", AUTO, "sleep 3")
        terminal.keys("only the needles matter")
        terminal.press("\r")
        terminal.wait("turn 6")
    with day.transcript("esc", AUTO):
        day.say("Count again", AUTO)
        terminal.until(lambda: (shop / "count.log").exists(), "the command")
        terminal.press(ESC)
        terminal.wait("interrupted")
    with day.transcript("command", AUTO):
        day.say("/review stock.txt", AUTO, "add pieces")
    with day.transcript("skill", AUTO):
        day.say("How do I hem the tablecloth?", AUTO, "inner fold.")
    with day.transcript("context", AUTO):
        day.say("/context", AUTO)
    with day.transcript("compact", AUTO):
        day.say("/compact the stock", AUTO)
    with day.transcript("leave"):
        terminal.ready(AUTO)
        terminal.press(CTRL_D)

    terminal.write("helper.json", script(AFTERNOON))
    terminal.write("mill.json", script(MILL))
    terminal.quietly("mill", "run", "Order flour", "--mode", "ask", "--no-input", "--model", f"scripted:{home}/mill.json")
    with day.transcript("mcp"):
        terminal.type("backstitch mcp add warehouse -- python3 ~/warehouse.py")
        terminal.type("backstitch mcp list --check")
    with day.transcript("resource", AUTO):
        terminal.type("backstitch --name order --model scripted:../helper.json")
        day.say("How much thread is there, by @warehouse:stock://thread ?", AUTO, "turn 1")
    with day.transcript("fetch", AUTO):
        day.say("What does it cost?", AUTO, "allow it?")
        terminal.press("n we ask Bo tomorrow\r")
        terminal.wait("turn 2")
    with day.transcript("kill"):
        day.say("Write the order", AUTO)
        terminal.until(lambda: (shop / "order.txt").exists(), "the command")
        terminal.kill()
    with day.transcript("continue", AUTO):
        terminal.type("backstitch -c")
        terminal.wait("[Y/n]")
        terminal.press("\r")
        terminal.wait("20 needles")
    with day.transcript("rewind", AUTO):
        day.say("/rewind --dry-run", AUTO)
        day.say("/rewind", AUTO)
        day.say("/undo", AUTO)
        terminal.ready(AUTO)
    terminal.press(CTRL_D)
    terminal.ready()
    for name, line in [("blame", "blame stock.txt"), ("log", "log --file stock.txt"), ("inbox", "inbox"), ("stats", "stats --by model"),
                       ("size", "size"), ("gc", "gc")]:
        with day.transcript(name):
            terminal.type(f"backstitch {line}")
    with day.transcript("budget"):
        terminal.type("backstitch config set day_budget.tokens 60000")
        terminal.type('backstitch ask order "Add ten buttons"')
    return day.transcripts


def form(text):
    """A transcript without ids, times, sizes, counts above nine and the widths of columns, and without what only slow runs print."""
    # A killed process leaves its status line, which is drawn after a moment of silence.
    text = re.sub(r"[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏] waiting for .*? \(\d+ s\)( · [\d,]+ tokens)?( · \d+ s in all)?\n?", "", text)
    text = re.sub(r"^waiting for MCP server .*\n", "", text, flags=re.MULTILINE)
    # The time of a call of a second or more.
    text = re.sub(r"  \(\d+\.\d s\)$", "", text, flags=re.MULTILINE)
    # What killed processes leave is removed by a call or by `gc`, whichever is first.
    text = re.sub(r"removed \S+,\s+which\s+a\s+killed\s+process\s+had\s+left\s", "", text)
    for pattern, word in [(r"\b[0-9a-f]{12,16}\b", "ID"), (r"\d{4}-\d\d-\d\d(T[\d:.]+Z)?", "DATE"), (r"\b(now|(\d+(\.\d+)? (ms|s|min)( ago)?))\b", "TIME"),
                          (r"rescue:\d+", "rescue:N"), (r"\d+ %|\d+\.\d+|\d[\d,]+", "N"), (r"[ \n]+", " ")]:
        text = re.sub(pattern, word, text)
    return text.strip()


def write(command, is_check):
    with Terminal(command, 0, columns=100, rows=50) as terminal:
        transcripts = play(terminal)
    differences = []

    def replace(found):
        head, name, old = found.groups()
        new = transcripts.pop(name, None)
        if new is None:
            sys.exit(f"docs/record: {GUIDE.name} has a transcript {name!r}, which no scene plays")
        if form(new) == form(old):
            return found.group()
        differences.extend(difflib.unified_diff(old.splitlines(), new.splitlines(), f"{name} of the guide", f"{name} now", lineterm=""))
        return f"{head}{new}```"

    text = re.sub(r"(<!-- ([a-z]+) -->\n```text\n)(.*?)```", replace, GUIDE.read_text(), flags=re.DOTALL)
    if transcripts:
        sys.exit(f"docs/record: {GUIDE.name} has no transcripts {', '.join(transcripts)}")
    if is_check and differences:
        sys.exit("docs/record: the guide shows something else; `docs/record day` writes it again:\n" + "\n".join(differences))
    if not is_check:
        GUIDE.write_text(text)
        print(f"docs/guides/{GUIDE.name}: {'changed' if differences else 'as before'}")
