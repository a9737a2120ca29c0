//! The file about a process, which its supervisor keeps: see [`times`](super::super::times).

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use rustix::fs::{Mode, OFlags};

use super::super::identity;
use super::super::times::{FileTime, ProcessTimes, file_of, file_time};
use super::protocol::Order;

/// How often the file says that the process runs.
const RENEWAL: Duration = Duration::from_secs(1);

/// The file about a process.
pub(super) struct TimesFile {
    path: PathBuf,
    /// A file without a name, in the file system of the workspace, whose times are those of that file system.
    clock: File,
    times: ProcessTimes,
}

/// A file that says once a second that the process runs, as long as it is active.
pub(super) struct RenewedFile {
    activity: Sender<bool>,
    renewing: JoinHandle<TimesFile>,
}

impl TimesFile {
    /// Creates the file, before the process starts. `None` if the order names none, or the file system does not show its time.
    pub(super) fn create(order: &Order) -> Option<Self> {
        if order.times.as_os_str().is_empty() {
            return None;
        }
        let path = file_of(&order.times, std::process::id());
        let parent = path.parent()?;
        DirBuilder::new().recursive(true).mode(0o700).create(parent).ok()?;
        let clock = open_clock(&order.root, parent).ok()?;
        let mut file = Self { path, clock, times: ProcessTimes::default() };
        let now = file.now().ok()?;
        file.times = ProcessTimes { boot: identity::boot().to_owned(), started: now, alive: now, dead: None };
        file.write().ok()?;
        Some(file)
    }

    /// Renews the file on a thread of its own, until it is finished.
    pub(super) fn renew(mut self) -> io::Result<RenewedFile> {
        let (activity, received) = mpsc::channel();
        let renewing = std::thread::Builder::new().name("times".to_owned()).spawn(move || {
            let mut is_active = true;
            loop {
                let next = match is_active {
                    true => received.recv_timeout(RENEWAL),
                    false => received.recv().map_err(|_| RecvTimeoutError::Disconnected),
                };
                match next {
                    Ok(active) => is_active = active,
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => return self,
                }
                // What fails leaves the last time at which the process was seen.
                if is_active && let Ok(now) = self.now() {
                    self.times.alive = now;
                    let _ = self.write();
                }
            }
        })?;
        Ok(RenewedFile { activity, renewing })
    }

    /// Records that no process is left.
    pub(super) fn finish(mut self) {
        if let Ok(now) = self.now() {
            self.times.dead = Some(now);
            let _ = self.write();
        }
    }

    /// Returns the time that a file gets that changes now.
    fn now(&self) -> io::Result<FileTime> {
        // The file system sets the time of this change itself, whatever time is given.
        self.clock.set_modified(SystemTime::now())?;
        let found = self.clock.metadata()?;
        Ok(file_time(found.ctime(), found.ctime_nsec()))
    }

    fn write(&self) -> io::Result<()> {
        let new = self.path.with_file_name(format!("new-{}", std::process::id()));
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
        file.write_all(&serde_json::to_vec(&self.times)?)?;
        fs::rename(new, &self.path)
    }
}

impl RenewedFile {
    /// Says whether the process may change files. The file is renewed at once if it may, and not at all otherwise.
    pub(super) fn set_active(&self, is_active: bool) {
        // The thread ends after this value only.
        let _ = self.activity.send(is_active);
    }

    /// Records that no process is left.
    pub(super) fn finish(self) {
        drop(self.activity);
        if let Ok(file) = self.renewing.join() {
            file.finish();
        }
    }
}

/// Opens a file without a name in the file system of a directory. `beside` is another directory, in which one can be created if it
/// is in the same file system, for systems that have no such files.
fn open_clock(directory: &Path, beside: &Path) -> io::Result<File> {
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    match rustix::fs::open(directory, flags, Mode::RUSR | Mode::WUSR) {
        Ok(clock) => Ok(clock.into()),
        Err(_) if fs::metadata(directory)?.dev() == fs::metadata(beside)?.dev() => {
            let path = beside.join(format!("clock-{}", std::process::id()));
            let clock = File::create(&path)?;
            fs::remove_file(&path)?;
            Ok(clock)
        }
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_ordered_with_those_of_other_files() {
        let place = tempfile::tempdir().unwrap();
        let (root, own) = (place.path().join("root"), place.path().join("own"));
        fs::create_dir(&root).unwrap();
        let order = Order { times: own.join("call-1"), root: root.clone(), ..Order::default() };
        let changed = |path: &Path| {
            let found = fs::metadata(path).unwrap();
            file_time(found.ctime(), found.ctime_nsec())
        };
        let read = |path: &Path| serde_json::from_slice::<ProcessTimes>(&fs::read(path).unwrap()).unwrap();

        fs::write(root.join("before"), "1").unwrap();
        let file = TimesFile::create(&order).unwrap();
        let path = file.path.clone();
        let started = read(&path);
        assert!(changed(&root.join("before")) <= started.started && started.dead.is_none(), "{started:?}");
        fs::write(root.join("during"), "1").unwrap();
        file.renew().unwrap().finish();
        let dead = read(&path).dead.unwrap();
        fs::write(root.join("after"), "1").unwrap();
        assert!(started.started <= changed(&root.join("during")) && changed(&root.join("during")) <= dead);
        assert!(dead <= changed(&root.join("after")));
        assert_eq!(fs::read_dir(&root).unwrap().count(), 3, "the clock has no name");
        assert_eq!(fs::read_dir(&own).unwrap().count(), 1);
    }
}
