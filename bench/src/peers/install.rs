//! Packages of other systems, in `target/peers`: those for Python in a virtual environment, the server of Restate from npm.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::worker::Worker;
use crate::agent::Failed;

const SERVER: &str = "@restatedev/restate-server@1.7.12";

pub(crate) fn place() -> Result<PathBuf, Failed> {
    let program = std::env::current_exe()?;
    let target = program.parent().and_then(Path::parent).ok_or("this program is not below `target`")?;
    Ok(target.join("peers"))
}

/// Installs packages for Python unless they are there, and returns the interpreter.
pub(crate) fn packages(names: &[&str]) -> Result<PathBuf, Failed> {
    let environment = place()?.join("venv");
    let python = environment.join("bin/python");
    if !python.is_file() {
        succeed(Command::new("python3").args(["-m", "venv"]).arg(&environment))?;
    }
    let quiet = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
    succeed(Command::new(&python).args(quiet).args(names))?;
    Ok(python)
}

/// Installs the server of Restate unless it is there, and starts it with its data and its sockets in a directory.
/// `BACKSTITCH_RESTATE_SERVER` names another one.
pub(super) fn server(directory: &Path) -> Result<Worker, Failed> {
    let packages = place()?.join("node_modules/@restatedev");
    let named = std::env::var_os("BACKSTITCH_RESTATE_SERVER").map(PathBuf::from);
    let program = match named.or_else(|| find(&packages)) {
        Some(program) => program,
        None => {
            let quiet = ["install", "--silent", "--no-fund", "--no-audit", "--prefix"];
            succeed(Command::new("npm").args(quiet).arg(place()?).arg(SERVER))?;
            find(&packages).ok_or("its npm package has no server for this platform")?
        }
    };
    std::fs::create_dir_all(directory)?;
    let mut command = Command::new(program);
    command
        .args(["--no-logo", "--listen-mode", "unix", "--node-name", "node", "--base-dir"])
        .arg(directory)
        .env("RESTATE_DISABLE_TELEMETRY", "true")
        .env("RUST_LOG", "error")
        .stderr(Stdio::null());
    let server = Worker::start(command)?;
    let until = Instant::now() + Duration::from_secs(60);
    while !["admin", "ingress"].iter().all(|name| directory.join(format!("node/{name}.sock")).exists()) {
        if Instant::now() > until {
            return Err("the server of Restate does not listen".into());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(server)
}

/// Finds the server in the package of this platform.
fn find(packages: &Path) -> Option<PathBuf> {
    let all = std::fs::read_dir(packages).ok()?.flatten();
    all.map(|package| package.path().join("bin/restate-server")).find(|program| program.is_file())
}

/// Runs a program that has to succeed. The error is its last line.
pub(crate) fn succeed(command: &mut Command) -> Result<(), Failed> {
    let output = command.stdin(Stdio::null()).output()?;
    if output.status.success() {
        return Ok(());
    }
    let printed = String::from_utf8_lossy(&output.stderr);
    let last = printed.lines().last().unwrap_or_default();
    Err(format!("{}: {last}", command.get_program().display()).into())
}
