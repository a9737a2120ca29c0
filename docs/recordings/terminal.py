"""A shell in a pseudo terminal, and what stands on its screen at each time.

The screen is a page that grows: lines that scroll out of a real screen stay above. The page understands what bash and the
command print, and stops with an error at anything else.
"""
import fcntl
import os
import pty
import re
import secrets
import select
import shutil
import signal
import string
import struct
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path

PROMPT = "$ "
HOME = "/home/ada"  # what is shown for the directory of the recording
PLAIN = ()
TOKEN = re.compile(r"\x1b\[([?>]?)([0-9;]*)([A-Za-z])|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[=>]|[\x00-\x1f]|[^\x00-\x1f]+")


class Page:
    """All lines of a terminal: lists of cells, each a character with its style."""

    def __init__(self, columns, rows):
        self.columns, self.rows = columns, rows
        self.lines, self.row, self.column, self.style, self.top = [[]], 0, 0, PLAIN, 0
        self.changed, self.continued = set(), set()

    def feed(self, text):
        """Applies output, and returns how often the position of the cursor was asked for."""
        asked = 0
        for token in TOKEN.finditer(text):
            whole = token.group()
            if token.group(3):
                asked += self.control(token.group(1), token.group(2), token.group(3))
            elif whole == "\r":
                self.column = 0
            elif whole == "\n":
                self.down(1)
            elif whole == "\b":
                self.column = max(0, self.column - 1)
            elif whole == "\t":
                self.write(" " * (8 - self.column % 8))
            elif whole >= " ":
                self.write(whole)
            elif whole not in "\x07\x0e\x0f" and not whole.startswith(("\x1b]", "\x1b=", "\x1b>")):
                sys.exit(f"docs/record: the terminal cannot show {whole!r}")
        return asked

    def down(self, count):
        self.row += count
        while len(self.lines) <= self.row:
            self.lines.append([])
        self.top = max(self.top, self.row - self.rows + 1)

    def write(self, text):
        for letter in text:
            if self.column == self.columns:
                self.column = 0
                self.down(1)
                self.continued.add(self.row)
            line = self.lines[self.row]
            line.extend([(" ", PLAIN)] * (self.column + 1 - len(line)))
            line[self.column] = (letter, self.style)
            self.changed.add(self.row)
            self.column += 1

    def control(self, private, numbers, kind):
        values = [int(number or 0) for number in numbers.split(";")]
        count = max(1, values[0])
        if kind == "m":
            self.paint(values)
        elif private or kind in "hlt":
            pass  # modes of the terminal, such as bracketed paste
        elif kind == "n":
            return 1
        elif kind == "A":
            self.row = max(self.top, self.row - count)
        elif kind == "B":
            self.down(count)
        elif kind == "C":
            self.column = min(self.columns - 1, self.column + count)
        elif kind == "D":
            self.column = max(0, self.column - count)
        elif kind == "G":
            self.column = count - 1
        elif kind in "KJ":
            first = 0 if values[0] else self.column
            del self.lines[self.row][first:]
            self.changed.add(self.row)
            if kind == "J":
                for below in range(self.row + 1, len(self.lines)):
                    self.lines[below].clear()
                    self.changed.add(below)
        else:
            sys.exit(f"docs/record: the terminal cannot follow {kind!r} with {numbers!r}")
        return 0

    def paint(self, values):
        for value in values:
            if value == 0:
                self.style = PLAIN
            elif value in (1, 2, 3, 4):
                self.style += (("b", "d", "i", "u")[value - 1],)
            elif 30 <= value <= 37 or 90 <= value <= 97:
                self.style = tuple(part for part in self.style if part[0] != "c") + (f"c{value % 10}",)
            elif value != 39:
                sys.exit(f"docs/record: the terminal has no style {value}")

    def text(self, first=0, end=None):
        """The rows from one on, as lines without spaces at their ends. Rows that the terminal broke are one line."""
        text = ""
        for row, cells in enumerate(self.lines[first:end], first):
            if row not in self.continued:
                text = text.rstrip(" ") + "\n" * (row > first)
            text += "".join(letter for letter, _ in cells)
        return text.rstrip()


def make_home():
    """Creates a directory whose path is as long as the one that is shown, so that lines break at the same places."""
    while True:
        name = "".join(secrets.choice(string.ascii_lowercase) for _ in range(len(HOME) - len("/tmp/")))
        try:
            os.mkdir(f"/tmp/{name}", 0o700)
            return Path("/tmp") / name
        except FileExistsError:
            pass


class Terminal:
    """An interactive shell. `pace` is how long a reader gets: 0 waits for nothing but the program."""

    def __init__(self, command, pace, columns=98, rows=30, **variables):
        self.place, self.home = Path(tempfile.mkdtemp(prefix="backstitch-record-")), make_home()
        self.pace, self.undecoded, self.seen = pace, b"", ""
        self.page, self.started, self.history = Page(columns, rows), time.monotonic(), []
        (self.place / "bin").mkdir()
        (self.place / "inputrc").write_text("set enable-bracketed-paste off\n")
        (self.place / "bin" / "backstitch").symlink_to(command)
        self.environment = {
            "PATH": f"{self.place}/bin:/usr/bin:/bin", "HOME": str(self.home), "TERM": "xterm", "LANG": "C.UTF-8", "TZ": "UTC",
            "INPUTRC": f"{self.place}/inputrc", "PS1": PROMPT, "PAGER": "cat", "BASH_SILENCE_DEPRECATION_WARNING": "1",
            "HISTFILE": "/dev/null", **variables,
        }
        self.shell = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.shell:
            os.kill(self.shell, signal.SIGHUP)
            os.close(self.file)
            os.waitpid(self.shell, 0)
        for directory in (self.place, self.home):
            shutil.rmtree(directory, ignore_errors=True)

    def write(self, path, text):
        file = self.home / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        return file

    def quietly(self, directory, *arguments):
        """Runs the command outside of the recording."""
        run = [str(self.place / "bin" / "backstitch"), *arguments]
        os.makedirs(self.home / directory, exist_ok=True)
        done = subprocess.run(run, cwd=self.home / directory, env=self.environment, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if done.returncode not in (0, 3):
            sys.exit(f"docs/record: `backstitch {' '.join(arguments)}` failed:\n{done.stdout}{done.stderr}")
        return done.stdout

    def open(self, directory):
        """Starts the shell in a directory of the home."""
        os.makedirs(self.home / directory, exist_ok=True)
        self.shell, self.file = pty.fork()
        if self.shell == 0:
            os.chdir(self.home / directory)
            os.execvpe("bash", ["bash", "--norc", "--noprofile", "-i"], self.environment)
        fcntl.ioctl(self.file, termios.TIOCSWINSZ, struct.pack("HHHH", self.page.rows, self.page.columns, 0, 0))
        self.started = time.monotonic()
        self.until(self.has_prompt, "the prompt")

    def read(self, seconds):
        if not select.select([self.file], [], [], seconds)[0]:
            return
        self.undecoded += os.read(self.file, 65536)
        try:
            text, self.undecoded = self.undecoded.decode(), b""
        except UnicodeDecodeError:
            return  # a character is split between two reads
        text = text.replace(str(self.home), HOME)
        self.seen += text
        asked = self.page.feed(text)
        for _ in range(asked):
            os.write(self.file, f"\x1b[{self.page.row - self.page.top + 1};{self.page.column + 1}R".encode())
        now = time.monotonic() - self.started
        changed = [(row, tuple(self.page.lines[row])) for row in sorted(self.page.changed)]
        self.history.append((now, self.page.top, changed))
        self.page.changed.clear()

    def until(self, is_done, what):
        deadline = time.monotonic() + 60
        while not is_done():
            if time.monotonic() > deadline:
                sys.exit(f"docs/record: timed out waiting for {what}; the terminal shows:\n{self.page.text(max(0, self.page.row - 30))}")
            self.read(0.02)

    def has_prompt(self, prompt=PROMPT):
        return self.page.column == len(prompt) and self.page.text(self.page.row) == prompt.rstrip()

    def rest(self, seconds):
        """Gives readers time."""
        end = time.monotonic() + seconds * self.pace
        while time.monotonic() < end:
            self.read(0.02)

    def ready(self, prompt=PROMPT):
        self.until(lambda: self.has_prompt(prompt), f"the prompt {prompt!r}")

    def type(self, text, prompt=PROMPT):
        """Types a line at a prompt, word by word."""
        self.ready(prompt)
        row = self.page.row
        self.rest(0.5)
        self.keys(text)
        self.until(lambda: text.split()[-1] in self.page.text(row), f"the echo of {text!r}")
        self.rest(0.3)
        self.press("\r")
        self.until(lambda: self.page.row > row, f"a line after {text!r}")

    def keys(self, text):
        for word in re.findall(r"\S+\s*|\s+", text):
            os.write(self.file, word.encode())
            end = time.monotonic() + 0.14 * self.pace
            while time.monotonic() < end:
                self.read(0.02)

    def press(self, keys):
        self.seen = ""
        os.write(self.file, keys.encode())

    def wait(self, text):
        """Waits until a text was printed since the last line or key."""
        self.until(lambda: text in re.sub(r"\x1b\[[?0-9;]*[A-Za-z]", "", self.seen), repr(text))

    def kill(self):
        """Kills the command with SIGKILL, as `kill -9` does."""
        listed = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=True)
        pairs = [tuple(map(int, line.split())) for line in listed.stdout.splitlines()]
        os.kill(next(pid for pid, parent in pairs if parent == self.shell), signal.SIGKILL)
