//! The example `restate`, driven by a real server of Restate, and killed with SIGKILL while its session rests, while it writes a file, and
//! while it acts outside.
//!
//! `BACKSTITCH_RESTATE_SERVER` names the server, `BACKSTITCH_RESTATE_EXAMPLE` the program of `examples/restate`; `./test --restate` installs
//! and builds them. Without them the test says so and passes.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use backstitch::prelude::*;
use serde_json::{Value, json};
use tempfile::TempDir;

/// A process that is killed when it is dropped.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits until a condition holds.
fn wait_for(what: &str, mut holds: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs(120);
    while !holds() {
        assert!(Instant::now() < until, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

struct Shop {
    place: TempDir,
    program: PathBuf,
    address: String,
    session: SessionId,
}

impl Shop {
    fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// Starts the program, and returns once it listens.
    fn endpoint(&self) -> Process {
        let mut child = Command::new(&self.program)
            .args(["store/store.db", "workspace", "outside"].map(|name| self.path(name)))
            .arg(&self.address)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.starts_with("listening on "), "{line}");
        Process(child)
    }

    /// Sends a request to one of the sockets of the server: the status, and the body.
    fn send(&self, socket: &str, path: &str, header: &str, body: &Value) -> std::io::Result<(u16, Value)> {
        let mut stream = UnixStream::connect(self.path("restate/node").join(socket))?;
        stream.set_read_timeout(Some(Duration::from_secs(120)))?;
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let kind = if body.is_empty() { "" } else { "content-type: application/json\r\n" };
        let (head, length) =
            (format!("POST {path} HTTP/1.1\r\nhost: test\r\nconnection: close\r\n"), body.len());
        write!(stream, "{head}{kind}{header}content-length: {length}\r\n\r\n{body}")?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        Ok((status, serde_json::from_str(body).unwrap_or(Value::Null)))
    }

    /// Calls a handler of the session, which has to succeed.
    fn call(&self, handler: &str, header: &str, body: &Value) -> Value {
        let path = format!("/Session/{}/{handler}", self.session);
        let (status, answer) = self.send("ingress.sock", &path, header, body).unwrap();
        assert!((200..300).contains(&status), "{path}: {status} {answer}");
        answer
    }
}

#[test]
#[expect(clippy::print_stderr, reason = "a skipped test says so")]
fn a_session_is_driven_by_restate_and_survives_kills_of_its_endpoint() {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let (Some(server), Some(program)) =
        (variable("BACKSTITCH_RESTATE_SERVER"), variable("BACKSTITCH_RESTATE_EXAMPLE"))
    else {
        eprintln!(
            "SKIPPED: examples/restate is NOT tried with a server of Restate; ./test --restate installs and builds both"
        );
        return;
    };
    let place = TempDir::new().unwrap();
    for name in ["workspace", "outside", "restate"] {
        std::fs::create_dir(place.path().join(name)).unwrap();
    }
    // The program is started several times at one address, so it cannot choose a free port itself.
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let shop = Shop { place, program, address, session: Runtime::in_memory().new_id().unwrap() };
    let _server = start_server(&server, &shop.path("restate"));
    let endpoint = shop.endpoint();
    let deployment = json!({ "uri": format!("http://{}", shop.address) });
    wait_for("the endpoint can be registered", || {
        shop.send("admin.sock", "/deployments", "", &deployment).is_ok_and(|(status, _)| status == 201)
    });
    let slow = shop.path("outside/slow");

    // The call waits for a signal. The endpoint is killed while nothing is driven.
    let rest = shop.call("start", "", &json!("Make a coat."));
    assert_eq!(rest, json!({ "kind": "signal", "name": "delivered" }));
    assert_eq!(shop.call("start", "", &json!("Make a coat.")), rest, "a second start only drives");
    drop(endpoint);
    let endpoint = shop.endpoint();

    // A signal that is sent twice with one key is delivered once. A timer of Restate ends the second wait of the call, and the endpoint is
    // killed while the next call has written half of its file.
    std::fs::write(&slow, "").unwrap();
    for _ in 0..2 {
        let signal = json!({ "signal": { "name": "delivered", "value": 17 } });
        shop.call("wake", "idempotency-key: parcel-17\r\n", &signal);
    }
    wait_for("the file is written", || shop.read("workspace/coat.txt") == "half a coat\n");
    drop(endpoint);
    assert_eq!(shop.read("workspace/coat.txt"), "half a coat\n");
    std::fs::remove_file(&slow).unwrap();
    let endpoint = shop.endpoint();

    // The call that needs approval waits for it. The endpoint is killed after its effect and before its result.
    let rest = shop.call("drive", "", &Value::Null);
    assert_eq!((&rest["kind"], &rest["reason"]), (&json!("person"), &json!("approval")), "{rest}");
    assert_eq!(shop.read("workspace/coat.txt"), "a coat\n");
    assert_eq!(shop.read("outside/log").lines().count(), 1, "nothing is shipped before the approval");
    let report = shop.call("report", "", &Value::Null);
    let call = &report["session"]["decisions"][0]["call"];
    assert!(call.is_string(), "{report}");
    std::fs::write(&slow, "").unwrap();
    let decision = json!({ "decision": { "call_id": call, "decision": { "kind": "approve" } } });
    shop.call("wake", "", &decision);
    wait_for("it is shipped", || shop.read("outside/log").contains("ship "));
    drop(endpoint);
    std::fs::remove_file(&slow).unwrap();
    let _endpoint = shop.endpoint();

    assert_eq!(shop.call("drive", "", &Value::Null), json!({ "kind": "finished" }));
    assert_eq!(shop.call("report", "", &Value::Null)["last_message"], "The coat is sewn and shipped.");
    assert_eq!(shop.read("workspace/coat.txt"), "a coat\n");
    let log = shop.read("outside/log");
    let acts: Vec<&str> = log.lines().filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(acts, ["order", "ship"], "each effect happened once: {log}");
}

/// Starts a server that listens on sockets in a directory.
fn start_server(program: &Path, directory: &Path) -> Process {
    let log = std::fs::File::create(directory.join("log")).unwrap();
    let child = Command::new(program)
        .args(["--no-logo", "--listen-mode", "unix", "--node-name", "node", "--base-dir"])
        .arg(directory)
        .env("RESTATE_DISABLE_TELEMETRY", "true")
        .current_dir(directory)
        .stdout(log.try_clone().unwrap())
        .stderr(log)
        .spawn()
        .unwrap();
    Process(child)
}
