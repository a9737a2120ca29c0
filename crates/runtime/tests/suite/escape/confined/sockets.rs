//! Sockets of other programs, and the network beside them.

use std::io::{Read as _, Write as _};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};

use backstitch_core::ports::{ProcessSpec, Sandbox, SandboxRefusal, SandboxSockets};
use backstitch_runtime::probe;

use super::{attempt, confined, run};
use crate::sandbox::{Scene, has_program, is_unsupported};

/// Programs of the person that listen outside.
struct Servers {
    streams: Vec<UnixListener>,
    datagrams: Vec<UnixDatagram>,
    /// The name of the sockets without a file.
    name: String,
}

impl Servers {
    fn new(scene: &Scene) -> Self {
        let name = format!("backstitch-test-{}", scene.at("").display());
        let address = |kind: &str| SocketAddr::from_abstract_name(format!("{name}{kind}")).unwrap();
        let streams = vec![
            UnixListener::bind(scene.at("outside/stream.sock")).unwrap(),
            UnixListener::bind_addr(&address("-stream")).unwrap(),
        ];
        let datagrams = vec![
            UnixDatagram::bind(scene.at("outside/log.sock")).unwrap(),
            UnixDatagram::bind_addr(&address("-log")).unwrap(),
        ];
        streams.iter().for_each(|socket| socket.set_nonblocking(true).unwrap());
        datagrams.iter().for_each(|socket| socket.set_nonblocking(true).unwrap());
        Self { streams, datagrams, name }
    }

    /// Returns the number of connections and datagrams that have arrived.
    fn arrived(&self) -> usize {
        let streams: usize =
            self.streams.iter().map(|socket| socket.incoming().map_while(Result::ok).count()).sum();
        let mut datagrams = 0;
        for socket in &self.datagrams {
            while socket.recv(&mut [0; 64]).is_ok() {
                datagrams += 1;
            }
        }
        streams + datagrams
    }
}

/// Tries to reach the servers. Prints `0` for each that it has reached.
const ATTEMPTS: &str = r#"
import array, socket
base = os.environ["BASE"]
stream, log = base + "outside/stream.sock", base + "outside/log.sock"
abstract = "\0" + NAME
def connected(address, kind=socket.SOCK_STREAM):
    other = socket.socket(socket.AF_UNIX, kind)
    other.connect(address)
    return 0
attempt("a stream by its path", lambda: connected(stream))
attempt("a stream by a relative path", lambda: connected("../outside/stream.sock"))
attempt("a stream through a link", lambda: connected("directory-link/stream.sock"))
attempt("a stream through the process", lambda: connected("/proc/self/cwd/../outside/stream.sock"))
attempt("a stream without a file", lambda: connected(abstract + "-stream"))
attempt("a datagram socket", lambda: connected(log, socket.SOCK_DGRAM))
attempt("a datagram socket without a file", lambda: connected(abstract + "-log", socket.SOCK_DGRAM))
def sent(kind, address, rights=False):
    one, _ = socket.socketpair(socket.AF_UNIX, kind)
    if rights:
        descriptor = array.array("i", [os.open("/etc/passwd", os.O_RDONLY)])
        one.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, descriptor)], 0, address)
    else:
        one.sendto(b"x", address)
    # A stream or a sequence ignores the address, and the bytes stay in the pair.
    return 0 if kind & 15 in (2, 3) else "in the pair"
for name, kind in {"datagram": 2, "raw": 3, "datagram, close on exec": 2 | 0x80000, "datagram, not blocking": 2 | 0x800,
                   "raw, both": 3 | 0x80800, "stream": 1, "sequence": 5}.items():
    attempt(f"a pair ({name})", lambda: sent(kind, log))
    attempt(f"a pair ({name}) without a file", lambda: sent(kind, abstract + "-log"))
    attempt(f"a pair ({name}) with a descriptor", lambda: sent(kind, log, True))
def again(address):
    one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    other.close()
    one.shutdown(socket.SHUT_RDWR)
    one.connect(address)
    return 0
attempt("a pair that is connected again", lambda: again(stream))
def connected_raw(number):
    socket.socket(fileno=number).connect(stream)
    return 0
def sent_raw(high):
    pair = (ctypes.c_int * 2)()
    call("socketpair", 1 | high, 2 | high, 0, pair)
    socket.socket(fileno=pair[0]).sendto(b"x", log)
    return 0
attempt("a socket with high bits", lambda: connected_raw(call("socket", 1 | 1 << 32, 1, 0)))
attempt("a pair with high bits", lambda: sent_raw(1 << 32))
if X86:
    attempt("a socket of the other interface", lambda: connected_raw(call(41 | 0x40000000, 1, 1, 0)))
for name in ["io_uring_setup", "io_uring_enter", "io_uring_register"]:
    attempt(name, lambda: call(name, 1, 0, 0, 0, 0, 0))
def child(address):
    done = os.fork()
    if done == 0:
        try:
            os.setsid()
            os._exit(connected(address))
        except OSError as error:
            os._exit(error.errno)
    return os.waitstatus_to_exitcode(os.waitpid(done, 0)[1])
attempt("a daemon", lambda: child(stream))
"#;

fn attempts(servers: &Servers) -> String {
    format!("NAME = {:?}\n{ATTEMPTS}", servers.name)
}

#[tokio::test]
async fn no_socket_of_another_program_is_reached() {
    if is_unsupported() || !has_program("python3") {
        return;
    }
    for (mode, sandbox) in confined() {
        let scene = Scene::new().await;
        let servers = Servers::new(&scene);
        let results = attempt(&scene, &sandbox, &attempts(&servers)).await;
        for (name, result) in &results {
            assert_ne!(result, "0", "{mode}: {name}");
        }
        assert!(results.len() > 30, "{mode}: {results:?}");
        for name in ["io_uring_setup", "io_uring_enter", "io_uring_register"] {
            assert_eq!(results[name], "1", "{mode}: {name}");
        }
        assert_eq!(servers.arrived(), 0, "{mode}: {results:?}");
    }
}

/// The attempts do work where sockets are allowed, so that their failure elsewhere means something.
#[tokio::test]
async fn allowed_sockets_are_reached_with_and_without_a_network() {
    if is_unsupported() || !has_program("python3") {
        return;
    }
    for network in [true, false] {
        let scene = Scene::new().await;
        let servers = Servers::new(&scene);
        let sandbox = Sandbox { network, ..Sandbox::workspace().sockets(SandboxSockets::On) };
        let results = attempt(&scene, &sandbox, &attempts(&servers)).await;
        for name in [
            "a stream by its path",
            "a stream without a file",
            "a datagram socket",
            "a pair (datagram)",
            "a pair (datagram) with a descriptor",
            "a daemon",
        ] {
            assert_eq!(results[name], "0", "{network}: {name}");
        }
        for name in ["io_uring_setup", "io_uring_enter", "io_uring_register"] {
            assert_eq!(results[name], "1", "{network}: {name}");
        }
        assert!(servers.arrived() > 5, "{network}: {results:?}");
    }
}

#[tokio::test]
async fn the_network_works_where_sockets_are_refused() {
    if is_unsupported() || !has_program("python3") {
        return;
    }
    let scene = Scene::new().await;
    let sandbox = Sandbox::workspace().sockets(SandboxSockets::Off);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = std::thread::spawn(move || {
        for _ in 0..2 {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.read(&mut [0; 4096]).unwrap();
            stream.write_all(b"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nsewn\n").unwrap();
        }
    });
    let python =
        format!("import urllib.request; print(urllib.request.urlopen('http://localhost:{port}/').read())");
    let outcome = scene.run(ProcessSpec::new("python3").arg("-c").arg(python).sandbox(sandbox.clone())).await;
    assert_eq!(outcome.stdout.text(), "b'sewn\\n'\n", "{outcome:?}");
    let second = if has_program("curl") {
        ProcessSpec::new("curl").args(["-s", "--noproxy", "*"]).arg(format!("http://127.0.0.1:{port}/"))
    } else {
        let python = format!(
            "import socket; s = socket.create_connection(('127.0.0.1', {port})); s.send(b'GET'); print('sewn')"
        );
        ProcessSpec::new("python3").arg("-c").arg(python)
    };
    let outcome = scene.run(second.sandbox(sandbox.clone())).await;
    assert_eq!(outcome.stdout.text(), "sewn\n", "{outcome:?}");
    server.join().unwrap();
    // Datagrams of the network, and what name resolution needs.
    let program = "
import socket
one, other = socket.socket(socket.AF_INET, socket.SOCK_DGRAM), socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
one.bind(('127.0.0.1', 0))
other.sendto(b'x', one.getsockname())
attempt('datagram', lambda: one.recv(1))
attempt('netlink', lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0).close())
attempt('resolution', lambda: len(socket.getaddrinfo('localhost', 80)) > 0)
";
    let results = attempt(&scene, &sandbox, program).await;
    assert_eq!(results["datagram"], "b'x'");
    assert_eq!(results["netlink"], "None");
    assert_eq!(results["resolution"], "True");
}

#[tokio::test]
async fn pairs_of_connected_sockets_work() {
    if is_unsupported() || !has_program("python3") {
        return;
    }
    let program = "
import asyncio, socket, subprocess
def passed(kind):
    one, other = socket.socketpair(socket.AF_UNIX, kind)
    one.send(b'x')
    return other.recv(1).decode()
attempt('stream', lambda: passed(socket.SOCK_STREAM))
attempt('sequence', lambda: passed(socket.SOCK_SEQPACKET))
attempt('flags', lambda: passed(socket.SOCK_STREAM | socket.SOCK_CLOEXEC))
async def child():
    process = await asyncio.create_subprocess_exec('echo', 'x', stdout=subprocess.PIPE)
    return (await process.communicate())[0].decode().strip()
attempt('asyncio', lambda: asyncio.run(child()))
";
    let scene = Scene::new().await;
    for (mode, sandbox) in confined() {
        let results = attempt(&scene, &sandbox, program).await;
        for name in ["stream", "sequence", "flags", "asyncio"] {
            assert_eq!(results[name], "x", "{mode}: {name}");
        }
    }
}

#[tokio::test]
async fn a_refused_socket_is_named_with_the_setting() {
    if is_unsupported() || !has_program("python3") {
        return;
    }
    let scene = Scene::new().await;
    let _servers = Servers::new(&scene);
    let program = "
import socket
socket.socket(socket.AF_UNIX).connect(os.environ['BASE'] + 'outside/stream.sock')
";
    let outcome = run(&scene, &Sandbox::workspace(), program).await;
    assert!(!outcome.success());
    assert_eq!(outcome.refused, [SandboxRefusal::Sockets], "{outcome:?}");
    let text = SandboxRefusal::Sockets.to_string();
    assert!(text.contains("`sockets = \"on\"`"), "{text}");
}

/// A session of the person in a terminal multiplexer, which a command could type into.
#[tokio::test]
async fn a_terminal_multiplexer_is_not_reached() {
    use std::process::Command;

    if is_unsupported() || !Command::new("tmux").arg("-V").output().is_ok_and(|ran| ran.status.success()) {
        return;
    }
    let scene = Scene::new().await;
    let socket = scene.at("outside/tmux").display().to_string();
    let started = Command::new("tmux").args(["-S", &socket, "new-session", "-d", "cat"]).status().unwrap();
    assert!(started.success());
    let command = format!("tmux -S {socket} send-keys 'typed' Enter");
    for (mode, sandbox) in confined() {
        let outcome = scene.run(scene.shell(&sandbox, &command)).await;
        assert!(!outcome.success(), "{mode}: {outcome:?}");
        assert_eq!(outcome.refused, [SandboxRefusal::Sockets], "{mode}: {outcome:?}");
    }
    let shown = Command::new("tmux").args(["-S", &socket, "capture-pane", "-p"]).output().unwrap();
    let text = String::from_utf8_lossy(&shown.stdout).into_owned();
    Command::new("tmux").args(["-S", &socket, "kill-server"]).status().unwrap();
    assert!(!text.contains("typed"), "{text}");
}

/// From this version on, sockets inside of the workspace are told from others.
#[tokio::test]
async fn sockets_inside_work_where_the_system_tells_them_apart() {
    if is_unsupported() || !has_program("python3") {
        return;
    }
    let scene = Scene::new().await;
    let program = "
import socket
server, client = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
server.bind('own.sock')
server.listen()
client.connect('own.sock')
print('reached')
";
    let outcome = run(&scene, &Sandbox::workspace(), program).await;
    assert_eq!(outcome.success(), probe().distinguishes_sockets(), "{outcome:?}");
    let named = program.replace("own.sock", "other.sock");
    let outcome = run(&scene, &Sandbox::workspace().sockets(SandboxSockets::On), &named).await;
    assert!(outcome.success(), "{outcome:?}");
}
