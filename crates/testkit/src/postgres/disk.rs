//! A small disk for the tables of a server of one test, which can be filled.
//!
//! It is a file system in memory, in a mount namespace of its own. A process that ends with the test keeps it, so it outlasts restarts of the server. The log of the
//! server is elsewhere: without room it refuses what needs some (53100), and does not end.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::{StopMode, TestServer, USER, command, skip};

/// Mounts the disk, says so, and waits for the end of its input.
const KEEP: &str = r#"mount -t tmpfs -o "size=$2,mode=755" tmpfs "$1" && install -d -m 700 -o "$3" -g "$4" "$1/tables" && echo mounted && exec cat"#;

/// A disk that exists for as long as this value, or the server on it.
pub(super) struct SmallDisk {
    keeper: Child,
    place: PathBuf,
}

impl SmallDisk {
    /// Mounts a disk on a new directory. `None` where that is not permitted.
    fn mount(place: PathBuf, bytes: u64, (uid, gid): (u32, u32)) -> Option<Self> {
        fs::create_dir(&place).ok()?;
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", KEEP, "keeper"]).arg(&place);
        command.args([bytes.to_string(), uid.to_string(), gid.to_string()]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut disk = Self { keeper: command.spawn().ok()?, place };
        let mut answer = String::new();
        BufReader::new(disk.keeper.stdout.as_mut()?).read_line(&mut answer).ok()?;
        (answer == "mounted\n").then_some(disk)
    }

    /// The directory of the tables, as the server sees it.
    pub(super) fn tables(&self) -> PathBuf {
        self.place.join("tables")
    }

    /// A command as a user that sees the disk, with variables.
    pub(super) fn command(
        &self,
        program: &Path,
        (uid, gid): (u32, u32),
        variables: &[(&str, String)],
    ) -> Command {
        let mut entering = command(Path::new("/usr/bin/nsenter"), None);
        entering.arg(format!("--mount=/proc/{}/ns/mnt", self.keeper.id()));
        entering.args([format!("--setuid={uid}"), format!("--setgid={gid}")]).args(["--", "env"]);
        // For the program, and not for the one that enters as another user.
        entering.args(variables.iter().map(|(name, value)| format!("{name}={value}"))).arg(program);
        entering
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = self.keeper.kill();
        let _ = self.keeper.wait();
    }
}

impl TestServer {
    /// Puts the tables that are created from now on onto a disk of so many bytes. Says so loudly where that is not permitted.
    pub fn use_small_disk(&mut self, bytes: u64) {
        let place = self.directory.join("disk");
        self.disk = self.owner.and_then(|owner| SmallDisk::mount(place, bytes, owner));
        let Some(disk) = &self.disk else {
            return skip("no disk can be mounted for the server", " without room");
        };
        self.stop(StopMode::Fast);
        self.start_again();
        self.sql(&format!("CREATE TABLESPACE small LOCATION '{}'", disk.tables().display()));
        self.sql(&format!("ALTER ROLE {USER} SET default_tablespace = small"));
    }

    /// Whether the tables are on a small disk.
    pub fn has_small_disk(&self) -> bool {
        self.disk.is_some()
    }

    /// Fills the small disk, if there is one. Removing the file that is returned frees it.
    pub fn fill_disk(&self) -> Option<PathBuf> {
        let SmallDisk { keeper, place } = self.disk.as_ref()?;
        let path = PathBuf::from(format!("/proc/{}/root{}/ballast", keeper.id(), place.display()));
        let mut ballast = File::create(&path).expect("the disk can be written");
        while ballast.write_all(&[0; 1 << 16]).is_ok() {}
        Some(path)
    }
}
