"""A conversation: an answer, an edit with its approval, a mode, a kill in the middle of a command, and a rewind."""

NAME = "chat.svg"
TITLE = "A conversation: an edit is approved, the process is killed and continued, and the edit is rewound"
ROWS = 32
ASK, AUTO = "ask> ", "> "

PRICES = """\
def cents(price):
    return int(price * 100)

def total(prices):
    return sum(cents(price) for price in prices)
"""

REPLIES = r'''
[[reply]]
text = """
`total` adds up prices in cents. Two things are wrong with it:

1. It **cuts off** where it should round: `cents(0.29)` is 28.
2. Nothing checks it.

```python
>>> cents(0.29)
28
```
"""
delay_ms = 900
word_ms = 55
usage = { input_tokens = 3120, output_tokens = 84 }

[[reply]]
text = "I let it round."
delay_ms = 900
word_ms = 50
usage = { input_tokens = 3260, output_tokens = 61 }
[[reply.call]]
name = "edit_file"
arguments = { path = "prices.py", old = "int(price * 100)", new = "round(price * 100)" }

[[reply]]
text = "`cents(0.29)` is 29 now."
delay_ms = 600
word_ms = 50
usage = { input_tokens = 3390, output_tokens = 18 }

[[reply]]
text = "I run them."
delay_ms = 700
word_ms = 50
usage = { input_tokens = 3450, output_tokens = 55 }
[[reply.call]]
name = "shell"
arguments = { command = "echo checking > checks.log; sleep 4; echo 12 passed | tee -a checks.log" }

[[reply]]
text = "All **12** checks passed."
delay_ms = 600
word_ms = 50
usage = { input_tokens = 3560, output_tokens = 14 }
'''


def play(terminal):
    log = terminal.write("shop/prices.py", PRICES).parent / "checks.log"
    terminal.write("tailor.toml", REPLIES)
    terminal.write(".config/backstitch/config.toml", f'model = "scripted:{terminal.home}/tailor.toml"\nmode = "ask"\n')
    terminal.open("shop")
    terminal.type("backstitch")
    terminal.type("What is wrong with @prices.py?", ASK)
    terminal.wait("turn 1")
    terminal.rest(2.5)
    terminal.type("Mend it", ASK)
    terminal.wait("allow it?")
    terminal.rest(2.5)
    terminal.press("y\r")
    terminal.wait("turn 2")
    terminal.ready(ASK)
    terminal.rest(1.5)
    terminal.press("\x1b[Z")
    terminal.ready(AUTO)
    terminal.rest(1)
    terminal.type("Run the checks", AUTO)
    terminal.until(lambda: log.exists() and log.stat().st_size, "the command")
    terminal.rest(2)
    terminal.kill()
    terminal.ready()
    terminal.rest(0.5)
    terminal.type("# that was kill -9, from another terminal")
    terminal.type("backstitch -c")
    terminal.wait("[Y/n]")
    terminal.rest(1.5)
    terminal.press("\r")
    terminal.wait("turn 3")
    terminal.rest(1)
    terminal.type("/rewind 2 --dry-run", AUTO)
    terminal.ready(AUTO)
    terminal.rest(2)
    terminal.type("/rewind 2", AUTO)
    terminal.ready(ASK)
