//! Real PostgreSQL servers for tests, each with a pooler before it: the one that is installed, and version 18 beside it.
//!
//! The first test that needs a server starts it on sockets in a private directory, as another user where the tests run as root. All test processes share it, each
//! with schemas of its own. A script stops it, and removes its files, some seconds after the last of them has ended. A test that stops and restarts its
//! server, or fills its disk, has one of its own ([`private_server`]). A [`Proxy`] before a server loses answers, connections and time.

mod disk;
mod faults;
mod proxy;

use std::cell::Cell;
use std::fs::{self, File, OpenOptions, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub use faults::StopMode;
pub use proxy::Proxy;

/// The user of the server.
pub const USER: &str = "tailor";
/// The port of the server, which is a part of the name of its socket.
pub const PORT: u16 = 5432;
/// The port of the pooler.
pub const POOLER: u16 = 6432;
/// How many connections the pooler opens to the server.
const POOL_SIZE: usize = 2;

/// Names the directory of the programs of PostgreSQL 18. `./test` installs them and sets it.
const PROGRAMS_18: &str = "BACKSTITCH_POSTGRES_18";

thread_local! {
    /// Whether [`server`] is that of version 18 for this thread.
    static USES_18: Cell<bool> = const { Cell::new(false) };
}

/// Settings for a server whose data nobody needs after a crash of the machine.
const SETTINGS: &str = "
listen_addresses = ''
fsync = off
full_page_writes = off
max_connections = 300
shared_buffers = 64MB
autovacuum_naptime = 10
logging_collector = off
";

/// Stops the server once no process holds the lock.
const WATCH: &str = r#"cd /; while sleep 5 && [ -d "$1" ]; do
  flock -n -x "$1/users.lock" sh -c '"$2/pg_ctl" -D "$1/data" -m immediate stop; kill $(cat "$1/pgbouncer.pid"); rm -rf "$1/data" "$1/programs" "$1/pgbouncer.pid"' x "$1" "$2" && exit 0
done"#;

/// A running server. It keeps running for as long as this value exists.
pub struct TestServer {
    /// Directory of the sockets.
    pub directory: PathBuf,
    programs: PathBuf,
    /// The user and the group that it runs as, if these are not those of the test.
    owner: Option<(u32, u32)>,
    /// The client `psql`, which the package of version 18 lacks.
    psql: PathBuf,
    has_pooler: bool,
    /// Whether it is that of one test, and ends with it.
    is_private: bool,
    /// Variables with which it is started again.
    variables: std::sync::Mutex<Vec<(&'static str, String)>>,
    /// The disk of its tables, if that is a small one.
    disk: Option<disk::SmallDisk>,
    _users: File,
}

/// Returns the server, which is started if it does not run. Without PostgreSQL, or without the right to run it, it says so loudly and returns `None`.
pub fn server() -> Option<TestServer> {
    if !USES_18.get() {
        return running_in(shared_directory(""), None, false);
    }
    let Some(programs) = std::env::var_os(PROGRAMS_18) else {
        skip("PostgreSQL 18 is not installed (`./test` does it)", " with it");
        return None;
    };
    running_in(shared_directory("-18"), Some(programs.into()), false)
}

/// Starts a server in a directory, for one test. It stops with the value, or some seconds after the test was killed.
pub fn private_server(directory: &Path) -> Option<TestServer> {
    running_in(directory.to_owned(), None, true)
}

/// Calls a function for which [`server`] is that of version 18.
pub fn on_18<T>(run: impl FnOnce() -> T) -> T {
    USES_18.set(true);
    let done = run();
    USES_18.set(false);
    done
}

fn user_id() -> u32 {
    fs::metadata("/proc/self").map_or(0, |process| std::os::unix::fs::MetadataExt::uid(&process))
}

fn shared_directory(suffix: &str) -> PathBuf {
    // A socket's path is at most 107 bytes long.
    let directory = PathBuf::from(format!("/tmp/backstitch-postgres-{}{suffix}", user_id()));
    fs::create_dir_all(&directory).expect("a directory for the server can be created");
    directory
}

/// Returns the server in a directory, with the programs that are installed or with others.
fn running_in(directory: PathBuf, others: Option<PathBuf>, is_private: bool) -> Option<TestServer> {
    let Some(installed) = programs() else {
        skip("PostgreSQL is not installed", "");
        return None;
    };
    let psql = installed.join("psql");
    let programs = others.unwrap_or(installed);
    let owner = (user_id() == 0).then(|| passwd("postgres").unwrap_or((65534, 65534)));
    let shared = |name: &str| {
        let path = directory.join(name);
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .expect("a lock file can be opened");
        let _ = fs::set_permissions(&path, Permissions::from_mode(0o666));
        file
    };
    let users = shared("users.lock");
    users.lock_shared().expect("locks work");
    let starting = shared("start.lock");
    starting.lock().expect("locks work");
    let has_pooler = Path::new("/usr/sbin/pgbouncer").exists();
    if !accepts(&directory, PORT) {
        if let Some((uid, gid)) = owner {
            let _ = std::os::unix::fs::chown(&directory, Some(uid), Some(gid));
        }
        start(&programs, &directory, owner, has_pooler);
    }
    Some(TestServer {
        directory,
        programs,
        psql,
        owner,
        has_pooler,
        is_private,
        variables: std::sync::Mutex::default(),
        disk: None,
        _users: users,
    })
}

fn skip(reason: &str, how: &str) {
    use std::io::Write as _;
    let _ = writeln!(std::io::stderr(), "== {reason}: the store in PostgreSQL is NOT tested{how}");
}

/// Returns the newest programs of the server.
fn programs() -> Option<PathBuf> {
    let mut found: Vec<(u32, PathBuf)> = Vec::new();
    for versions in ["/usr/lib/postgresql", "/usr/local/lib/postgresql"] {
        for entry in fs::read_dir(versions).into_iter().flatten().flatten() {
            let version = entry.file_name().to_str().and_then(|name| name.parse().ok());
            let programs = entry.path().join("bin");
            found.extend(
                version.filter(|_| programs.join("initdb").exists()).map(|version| (version, programs)),
            );
        }
    }
    found.into_iter().max().map(|(_, programs)| programs)
}

fn passwd(name: &str) -> Option<(u32, u32)> {
    let text = fs::read_to_string("/etc/passwd").ok()?;
    let line = text.lines().find(|line| line.split(':').next() == Some(name))?;
    let mut fields = line.split(':').skip(2);
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

fn accepts(directory: &Path, port: u16) -> bool {
    UnixStream::connect(directory.join(format!(".s.PGSQL.{port}"))).is_ok()
}

/// A command as the owner of the server, without a terminal.
fn command(program: &Path, owner: Option<(u32, u32)>) -> Command {
    let mut command = Command::new(program);
    command
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .env("LC_ALL", "C.UTF-8");
    if let Some((uid, gid)) = owner {
        command.uid(uid).gid(gid);
    }
    command
}

fn start(programs: &Path, directory: &Path, owner: Option<(u32, u32)>, has_pooler: bool) {
    let programs = &runnable(programs, directory, owner);
    let data = directory.join("data");
    let _ = fs::remove_dir_all(&data);
    let run = |name: &str, arguments: &[&str]| {
        let ended = command(&programs.join(name), owner)
            .args(arguments)
            .status()
            .expect("a program of PostgreSQL runs");
        let log = fs::read_to_string(directory.join("log")).unwrap_or_default();
        assert!(ended.success(), "{name} failed: {log}");
    };
    let text = |path: &Path| path.to_str().expect("a path of the test is text").to_owned();
    run("initdb", &["-D", &text(&data), "-A", "trust", "-U", USER, "--no-sync", "-E", "UTF8"]);
    let file = data.join("postgresql.conf");
    let mut settings = fs::read_to_string(&file).expect("initdb writes settings");
    settings.push_str(SETTINGS);
    settings.push_str(&format!("unix_socket_directories = '{}'\n", directory.display()));
    fs::write(&file, settings).expect("settings can be written");
    let (data, log) = (text(&data), text(&directory.join("log")));
    run("pg_ctl", &["-D", &data, "-w", "-t", "60", "-l", &log, "start"]);
    if has_pooler {
        start_pooler(directory, owner);
    }
    let mut watch = command(Path::new("/usr/bin/setsid"), owner);
    watch.args(["--fork", "sh", "-c", WATCH, "watch"]).arg(directory).arg(programs);
    let started = watch.status();
    assert!(started.is_ok_and(|started| started.success()), "the watch does not start");
}

/// Returns the directory of the programs, or that of a copy where their owner may not enter the directories above them.
fn runnable(programs: &Path, directory: &Path, owner: Option<(u32, u32)>) -> PathBuf {
    let starts = command(&programs.join("postgres"), owner).arg("--version").status();
    if starts.is_ok_and(|ended| ended.success()) {
        return programs.to_owned();
    }
    let copy = directory.join("programs");
    let _ = fs::remove_dir_all(&copy);
    let run = |name: &str, arguments: &[&std::ffi::OsStr]| {
        let ended = command(Path::new(name), None).args(arguments).status();
        assert!(ended.is_ok_and(|ended| ended.success()), "{name} fails: PostgreSQL cannot be copied");
    };
    // The programs find their libraries beside them.
    run("cp", &["-R".as_ref(), programs.join("..").as_os_str(), copy.as_os_str()]);
    if let Some((uid, gid)) = owner {
        run("chown", &["-R".as_ref(), format!("{uid}:{gid}").as_ref(), copy.as_os_str()]);
    }
    copy.join("bin")
}

fn start_pooler(directory: &Path, owner: Option<(u32, u32)>) {
    let place = directory.display();
    let settings = format!(
        "[databases]\n* = host={place} port={PORT}\n[pgbouncer]\nlisten_addr =\nlisten_port = {POOLER}\nunix_socket_dir = {place}\n\
         auth_type = trust\nauth_file = {place}/users.txt\npool_mode = transaction\ndefault_pool_size = {POOL_SIZE}\nmax_client_conn = 1000\n\
         pidfile = {place}/pgbouncer.pid\nlogfile = {place}/pgbouncer.log\nquery_wait_timeout = 100\n"
    );
    let file = directory.join("pgbouncer.ini");
    fs::write(&file, settings).expect("settings can be written");
    fs::write(directory.join("users.txt"), format!("\"{USER}\" \"\"\n")).expect("settings can be written");
    let _ = fs::remove_file(directory.join("pgbouncer.pid"));
    let ended = command(Path::new("/usr/sbin/pgbouncer"), owner).arg("-d").arg(&file).status();
    assert!(ended.is_ok_and(|ended| ended.success()), "pgbouncer does not start");
    for _ in 0..500 {
        if accepts(directory, POOLER) {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("pgbouncer does not accept connections");
}

impl TestServer {
    /// An address of a store in a new schema.
    pub fn address(&self) -> String {
        self.address_on(&self.directory, PORT)
    }

    /// The same through the pooler, if there is one.
    pub fn pooled_address(&self) -> Option<String> {
        if !self.has_pooler {
            skip("pgbouncer is not installed", " through it");
        }
        self.has_pooler.then(|| self.address_on(&self.directory, POOLER))
    }

    /// The same on a socket in a directory.
    pub fn address_on(&self, directory: &Path, port: u16) -> String {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let nanos = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
        let schema = format!("test_{}_{number}_{nanos}", std::process::id());
        let host = directory.to_str().expect("a path of the test is text").replace('/', "%2F");
        format!("postgres://{USER}@{host}:{port}/postgres?schema={schema}")
    }

    /// Executes SQL as the owner of the server, and returns what it prints.
    pub fn sql(&self, sql: &str) -> String {
        self.sql_in(&self.directory, sql)
    }

    fn sql_in(&self, directory: &Path, sql: &str) -> String {
        let options = ["-X", "-A", "-t", "-q", "-v", "ON_ERROR_STOP=1", "-d", "postgres", "-c", sql];
        self.client_in(directory, "psql", &options).trim().to_owned()
    }

    /// Runs a client such as `pg_dump` as the owner of the server, and returns what it prints.
    pub fn client(&self, name: &str, arguments: &[&str]) -> String {
        self.client_in(&self.directory, name, arguments)
    }

    fn client_in(&self, directory: &Path, name: &str, arguments: &[&str]) -> String {
        let mut command = Command::new(self.psql.with_file_name(name));
        command.args(["-U", USER, "-p", &PORT.to_string(), "-h"]).arg(directory).args(arguments);
        let output = command.stdin(Stdio::null()).output().expect("a client of PostgreSQL runs");
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

/// The schema of an address of a test.
pub fn schema_of(address: &str) -> &str {
    address.rsplit_once("schema=").expect("an address of a test names its schema").1
}
