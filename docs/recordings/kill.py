"""Kill and resume: while the shell command of an agent has written half of a file, the process is killed with SIGKILL."""
import sys

NAME = "kill-and-resume.svg"
TITLE = "An agent is killed in the middle of a tool call, and resumed by a new process"
ROWS = 32

AGENT = r"""
name = "clerk"
model = "scripted:replies.toml"
tools = ["write_file", "shell"]
[shell]
effect = "workspace"
"""

REPLIES = r"""
[[reply]]
text = "I write down the stock."
delay_ms = 400
[[reply.call]]
name = "write_file"
arguments = { path = "stock.txt", text = "beads: 12\nbuttons: 40\nneedles: 7\n" }

[[reply]]
text = "Now the report."
delay_ms = 400
[[reply.call]]
name = "shell"
arguments = { command = "head -n 1 stock.txt > report.txt; sleep 3; tail -n +2 stock.txt >> report.txt" }

[[reply]]
text = "The report lists 3 kinds of goods."
delay_ms = 400
"""


def play(terminal):
    terminal.write("clerk.toml", AGENT)
    terminal.write("replies.toml", REPLIES)
    report = terminal.home / "shop" / "report.txt"
    terminal.open("shop")
    terminal.type('backstitch run "Take stock" --agent ../clerk.toml')
    terminal.until(lambda: report.exists() and report.stat().st_size, "half of the report")
    terminal.rest(1.5)
    terminal.kill()
    terminal.type("cat report.txt")
    terminal.ready()
    half = report.read_text()
    terminal.type("backstitch resume")
    terminal.type("cat report.txt")
    terminal.ready()
    if half != "beads: 12\n" or report.read_text() != (terminal.home / "shop" / "stock.txt").read_text():
        sys.exit(f"docs/record: the terminal does not show a kill and a resume:\n{terminal.page.text()}")
