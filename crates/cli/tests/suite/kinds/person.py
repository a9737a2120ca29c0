"""A program of the person, outside of every sandbox, with one object of each kind that another process of the same user may reach.

It prints what it has as one line of JSON, and ends with its input."""
import ctypes, json, os, socket, sys

base = sys.argv[1]
libc = ctypes.CDLL(None, use_errno=True)
MACHINE = 0 if os.uname().machine == "x86_64" else 1


def call(number, *arguments):
    done = libc.syscall(ctypes.c_long(number[MACHINE]), *[
        value if isinstance(value, (bytes, ctypes.Array)) else ctypes.c_ulong(value) for value in arguments])
    return done if done != -1 else None


def unix(kind, name):
    listener = socket.socket(socket.AF_UNIX, kind)
    listener.bind(name)
    return listener


stream = unix(socket.SOCK_STREAM, base + "/outside/stream.sock")
abstract = unix(socket.SOCK_STREAM, "\0backstitch-kinds-" + base)
datagrams = unix(socket.SOCK_DGRAM, base + "/outside/log.sock")
stream.listen(64)
abstract.listen(64)
tcp = socket.create_server(("127.0.0.1", 0), backlog=64)
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
udp.bind(("127.0.0.1", 0))
descriptor = os.open(base + "/outside/held", os.O_RDWR)
private = 0o600
memory = libc.shmget(0, 4096, 0o1000 | private)
semaphores = libc.semget(0, 1, 0o1000 | private)
messages = libc.msgget(0, 0o1000 | private)
queue = ("backstitch-kinds-%d" % os.getpid()).encode()
# `mq_open`, and a key in the keyring of the user (`add_key`, `KEY_SPEC_USER_KEYRING`).
mqueue = call((240, 180), queue, os.O_CREAT | os.O_RDWR, private, 0)
key = call((248, 217), b"user", queue, b"velvet", 6, (1 << 64) - 4)
print(json.dumps({
    "process": os.getpid(), "test": os.getppid(), "tcp": tcp.getsockname()[1], "udp": udp.getsockname()[1], "descriptor": descriptor,
    "memory": memory, "semaphores": semaphores, "messages": messages,
    "queue": queue.decode() if mqueue is not None else None, "key": key,
}), flush=True)
sys.stdin.read()
libc.shmctl(memory, 0, None)
libc.semctl(semaphores, 0, 0)
libc.msgctl(messages, 0, None)
call((241, 181), queue)
if key is not None:
    call((250, 219), 3, key)
