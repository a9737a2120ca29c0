"""Tries to reach every kind of object from inside of a process, and reports which attempts worked.

The first argument is the kind of the process, the second one the directory of the test, where `person.json` describes a program of the
person and `report` gets the results. Each attempt belongs to a row of the table in `docs/security.md`."""
import ctypes, fcntl, json, os, resource, signal, socket, struct, sys, time

kind, base = sys.argv[1], sys.argv[2]
person = json.load(open(base + "/person.json"))
other = person["process"]
outside = base + "/outside/"
libc = ctypes.CDLL(None, use_errno=True)
MACHINE = 0 if os.uname().machine == "x86_64" else 1
report = []


def failed():
    raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def call(number, *arguments):
    """Makes a call of the system by its numbers on x86-64 and on other machines."""
    done = libc.syscall(ctypes.c_long(number[MACHINE]), *[
        value if isinstance(value, (bytes, ctypes.Array)) or hasattr(value, "_obj") else ctypes.c_ulong(value)
        for value in arguments])
    return done if done != -1 else failed()


def row(subject, attempt, **ways):
    for name, way in ways.items():
        try:
            way()
            result = "open"
        except OSError:
            result = "refused"
        except Exception as error:
            result = repr(error)
        report.append([subject, attempt, name, result])


def temporary(name):
    return os.environ.get("TMPDIR", base + "/temporary") + "/" + name


def written(path, mode="a"):
    with open(path, mode) as file:
        file.write("x")


def closed(path, flags):
    os.close(os.open(path, flags))


# Files.
def through_link():
    os.symlink(outside + "file", temporary("link"))
    written(temporary("link"))


def made(name):
    os.rename(temporary_file(name), outside + name)
    os.remove(outside + name)


def temporary_file(name):
    written(temporary(name), "w")
    return temporary(name)


row("files outside", "create, write, delete, rename, link",
    create=lambda: (written(outside + "new-" + kind), os.remove(outside + "new-" + kind)),
    append=lambda: written(outside + "file"),
    truncate=lambda: os.truncate(outside + "file", 4),
    delete=lambda: (os.remove(outside + "spare"), written(outside + "spare")),
    rename=lambda: (os.rename(outside + "spare", outside + "spare2"), os.rename(outside + "spare2", outside + "spare")),
    move_in=lambda: (os.rename(outside + "spare", temporary("spare")), os.rename(temporary("spare"), outside + "spare")),
    move_out=lambda: made("moved"),
    link_in=lambda: os.link(outside + "file", temporary("hard")),
    through_link=through_link,
    directory=lambda: (os.mkdir(outside + "made"), os.rmdir(outside + "made")))
row("files outside", "change mode, times and attributes",
    mode=lambda: os.chmod(outside + "file", 0o640),
    times=lambda: os.utime(outside + "file", (1, 1)))
def watched():
    queue = libc.inotify_init()
    if queue < 0 or libc.inotify_add_watch(queue, outside.encode(), 2) < 0:
        failed()


def locked():
    with open(outside + "file") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


row("files outside", "read, watch, lock",
    read=lambda: open(outside + "file").read(),
    watch=watched, lock=locked)
row("files of the workspace", "write", create=lambda: (written("made"), os.remove("made")))
row("the store", "write", open=lambda: closed(base + "/store/store.db", os.O_RDWR), create=lambda: written(base + "/store/new"))
row("programs that run as their owner", "make one", mode=lambda: os.chmod(temporary_file("owner"), 0o4755))
row("devices", "make one, open a raw one",
    make=lambda: os.mknod(temporary("device"), 0o20600, os.makedev(1, 3)),
    kernel_log=lambda: closed("/dev/kmsg", os.O_WRONLY))


def mounted():
    if libc.mount(b"none", temporary("").encode(), b"tmpfs", 0, None) != 0:
        failed()
    libc.umount2(temporary("").encode(), 2)


def in_child(work):
    """Runs what changes the process itself in a child. Fails with its error."""
    child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        except OSError as error:
            os._exit(error.errno or 255)
        except BaseException:
            os._exit(255)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code == 255 or code < 0:
        raise RuntimeError(f"the child ended with {code}")
    if code:
        raise OSError(code, os.strerror(code))


def unshared_mount():
    uid, gid = os.getuid(), os.getgid()
    if libc.unshare(0x10000000 | 0x20000) != 0:
        failed()
    with open("/proc/self/uid_map", "w") as users:
        users.write(f"0 {uid} 1")
    mounted()


def entered():
    handle = call((434, 434), other, 0)
    if libc.setns(handle, 0x20000) != 0:
        failed()


row("namespaces", "mount, also in a new one; enter that of another process",
    mount=mounted, mount_in_new=lambda: in_child(unshared_mount), enter=lambda: in_child(entered))

# Terminals.
row("terminals", "make one", make=lambda: closed("/dev/ptmx", os.O_RDWR | os.O_NOCTTY))


# Sockets.
def connected(family, address, type=socket.SOCK_STREAM):
    with socket.socket(family, type) as one:
        one.connect(address)
        if type == socket.SOCK_DGRAM:
            one.send(b"x")


def passed_to_log():
    one, two = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    one.sendto(b"x", outside + "log.sock")


row("TCP, UDP, netlink", "open a socket, reach a server",
    tcp=lambda: connected(socket.AF_INET, ("127.0.0.1", person["tcp"])),
    udp=lambda: connected(socket.AF_INET, ("127.0.0.1", person["udp"]), socket.SOCK_DGRAM),
    netlink=lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0).close())
row("sockets of other programs", "connect, send",
    path=lambda: connected(socket.AF_UNIX, outside + "stream.sock"),
    abstract=lambda: connected(socket.AF_UNIX, "\0backstitch-kinds-" + base),
    datagram=lambda: connected(socket.AF_UNIX, outside + "log.sock", socket.SOCK_DGRAM),
    pair=passed_to_log)
row("`io_uring`", "set up a ring", setup=lambda: os.close(call((425, 425), 1, ctypes.create_string_buffer(120))))


# Other processes.
def by_handle():
    handle = os.pidfd_open(other)
    try:
        signal.pidfd_send_signal(handle, signal.SIGCONT)
    finally:
        os.close(handle)


def seized(process):
    # `PTRACE_SEIZE`; the child ends, and so does the trace.
    if libc.ptrace(0x4206, process, None, None) != 0:
        failed()


def memory_read():
    target = ctypes.create_string_buffer(8)
    start = int(open(f"/proc/{other}/maps").readline().split("-")[0], 16)
    local = (ctypes.c_void_p * 2)(ctypes.addressof(target), 8)
    remote = (ctypes.c_void_p * 2)(start, 8)
    if libc.process_vm_readv(other, local, 1, remote, 1, 0) < 0:
        failed()


def taken_descriptor():
    handle = os.pidfd_open(other)
    os.close(call((438, 438), handle, person["descriptor"], 0))


row("other processes", "signal",
    signal=lambda: os.kill(other, signal.SIGCONT), group=lambda: os.killpg(os.getpgid(other), signal.SIGCONT), handle=by_handle)
row("other processes", "trace, read their memory, take their descriptors",
    trace=lambda: in_child(lambda: seized(other)), memory=memory_read, descriptor=taken_descriptor)
row("other processes", "change their limits",
    limits=lambda: resource.prlimit(other, resource.RLIMIT_CORE, (0, 0)))
row("other processes", "change priority, processors and scheduling",
    priority=lambda: os.setpriority(os.PRIO_PROCESS, other, 5),
    processors=lambda: os.sched_setaffinity(other, os.sched_getaffinity(other)),
    scheduling=lambda: os.sched_setscheduler(other, os.SCHED_BATCH, os.sched_param(0)),
    disk=lambda: call((251, 30), 1, other, 2 << 13 | 7))
row("`/proc`", "names and command lines of other processes", line=lambda: open(f"/proc/{other}/cmdline").read())
row("`/proc`", "environment, memory, files and directories of other processes",
    environment=lambda: open(f"/proc/{other}/environ", "rb").read(),
    memory=lambda: closed(f"/proc/{other}/mem", os.O_RDONLY),
    descriptor=lambda: closed(f"/proc/{other}/fd/{person['descriptor']}", os.O_RDWR),
    directory=lambda: os.listdir(f"/proc/{other}/cwd/"),
    root=lambda: os.listdir(f"/proc/{other}/root/"))
row("`/proc`", "change values of other processes and of the system",
    score=lambda: closed(f"/proc/{other}/oom_score_adj", os.O_WRONLY),
    system=lambda: closed("/proc/sys/kernel/hostname", os.O_WRONLY))

# The memory, the queues and the keys of the person.
libc.shmat.restype = ctypes.c_void_p


def attached():
    place = libc.shmat(person["memory"], None, 0)
    if place == ctypes.c_void_p(-1).value:
        failed()
    ctypes.memset(place, 1, 8)
    libc.shmdt(ctypes.c_void_p(place))


def counted():
    if libc.semop(person["semaphores"], struct.pack("hhh", 0, 1, 0o4000), 1) != 0:
        failed()


def sent():
    if libc.msgsnd(person["messages"], struct.pack("l8s", 1, b"x"), 1, 0o4000) != 0:
        failed()
    if libc.msgrcv(person["messages"], ctypes.create_string_buffer(16), 1, 0, 0o4000) < 0:
        failed()


row("shared memory, semaphores, message queues (System V)", "use those of the person",
    memory=attached, semaphores=counted, messages=sent)
if person["queue"]:
    row("message queues (POSIX)", "send to those of the person",
        send=lambda: os.close(call((240, 180), person["queue"].encode(), os.O_WRONLY, 0, 0)))
    row("message queues (POSIX)", "receive from those of the person",
        receive=lambda: os.close(call((240, 180), person["queue"].encode(), os.O_RDONLY, 0, 0)))
if person["key"]:
    row("keyrings", "read keys of the person",
        read=lambda: call((250, 219), 11, person["key"], ctypes.create_string_buffer(16), 16))


# What the process inherits, and what started it.
def inherited():
    os.write(7, b"x")


def parents():
    """The processes above this one, up to the one that the test started. None in a namespace, where the runtime has no number."""
    found, process = [], os.getppid()
    while process > 1 and process != person["test"]:
        found.append(process)
        try:
            text = open(f"/proc/{process}/stat").read()
        except OSError:
            break
        process = int(text[text.rindex(")") + 2:].split()[1])
    return found if process != 1 else []


above = parents()


def of_runtime(work):
    """Does something to the runtime: the highest of them. In a namespace of its own, a process sees none of them."""
    if not above:
        raise OSError(3, "there is no process above")
    work(above[-1])


row("inherited descriptors", "write to one", write=inherited)
row("Backstitch itself", "signal, trace, read its environment, change its limits",
    signal=lambda: of_runtime(lambda process: os.kill(process, 0)),
    trace=lambda: in_child(lambda: of_runtime(seized)),
    environment=lambda: of_runtime(lambda process: open(f"/proc/{process}/environ", "rb").read()),
    limits=lambda: of_runtime(lambda process: resource.prlimit(process, resource.RLIMIT_CORE, (0, 0))))


# Privileges.
def gained():
    # `PR_GET_NO_NEW_PRIVS`
    if libc.prctl(39, 0, 0, 0, 0) == 1:
        raise OSError(1, "a program gains nothing")


def module():
    try:
        call((175, 105), b"", 0, b"")
    except OSError as error:
        if error.errno in (1, 38):
            raise


row("privileges", "gain them by setuid programs", execute=gained)
row("the kernel", "as root: load code, set the name of the machine",
    module=module, name=lambda: socket.sethostname(socket.gethostname()))


def daemon():
    """Leaves a process that holds a lock, without environment, session and parent."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            hold = open(base + "/report/hold", "a")
            fcntl.flock(hold, fcntl.LOCK_SH)
            written(base + "/report/held")
            for number in range(3):
                os.close(number)
            os.set_inheritable(hold.fileno(), True)
            os.execve("/bin/sleep", ["kworker", "1000"], {})
        os._exit(0)
    os.wait()
    while not os.path.exists(base + "/report/held"):
        time.sleep(0.01)


if kind != "none":
    daemon()
with open(base + "/report/new", "w") as file:
    json.dump(report, file)
os.rename(base + "/report/new", base + "/report/" + kind)

if kind == "MCP server":
    server = {"name": "probe", "version": "1"}
    results = {"tools/list": {"tools": [{"name": "sew", "inputSchema": {"type": "object"}}]}}
    for line in sys.stdin:
        request = json.loads(line)
        results["initialize"] = {"capabilities": {"tools": {}}, "serverInfo": server,
            "protocolVersion": request.get("params", {}).get("protocolVersion")}
        if "id" in request:
            print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": results.get(request["method"], {})}), flush=True)
