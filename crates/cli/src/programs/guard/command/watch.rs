//! A watcher, which says that something in the covered directories has changed.
//!
//! On Linux it is inotify, with one watch for each directory: uncovered ones cost nothing. The kernel limits the number of
//! watches, and does not report writes through mapped memory, so the watcher may fail or miss something at any time. Other
//! systems have none.

#[cfg(target_os = "linux")]
pub(super) use self::linux::Watcher;
#[cfg(not(target_os = "linux"))]
pub(super) use self::none::Watcher;

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::HashMap;
    use std::mem::MaybeUninit;
    use std::os::fd::OwnedFd;
    use std::os::unix::ffi::OsStrExt as _;
    use std::path::{Path, PathBuf};
    use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

    use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
    use rustix::io::Errno;
    use tokio::sync::Notify;

    use super::super::tree::CoveredTree;

    /// A watcher of directories.
    #[derive(Debug)]
    pub(crate) struct Watcher {
        shared: Arc<Shared>,
    }

    #[derive(Debug)]
    struct Shared {
        descriptor: OwnedFd,
        hint: Notify,
        state: Mutex<State>,
    }

    #[derive(Debug)]
    struct State {
        directories: HashMap<i32, PathBuf>,
        tree: CoveredTree,
        problem: Option<String>,
    }

    impl Watcher {
        /// Watches all directories of a tree. Fails with the reason if that is not possible.
        pub(crate) fn start(tree: &CoveredTree) -> Result<Self, String> {
            let descriptor = inotify::init(CreateFlags::CLOEXEC).map_err(reason)?;
            let state = State { directories: HashMap::new(), tree: tree.clone(), problem: None };
            let shared = Arc::new(Shared { descriptor, hint: Notify::new(), state: Mutex::new(state) });
            shared.watch_all(tree.directories())?;
            let reading = shared.clone();
            // It ends with the process.
            std::thread::Builder::new()
                .name("watcher".to_owned())
                .spawn(move || reading.read())
                .map_err(|error| error.to_string())?;
            Ok(Self { shared })
        }

        /// Completes when something has changed since the last time.
        pub(crate) async fn hint(&self) {
            self.shared.hint.notified().await;
        }

        /// Watches directories that are new. Fails if not everything is watched.
        pub(crate) fn refresh(&self, tree: &CoveredTree) -> Result<(), String> {
            self.shared.state().tree = tree.clone();
            self.shared.watch_all(tree.directories())?;
            self.shared.state().problem.clone().map_or(Ok(()), Err)
        }
    }

    impl Shared {
        fn state(&self) -> MutexGuard<'_, State> {
            self.state.lock().unwrap_or_else(PoisonError::into_inner)
        }

        fn watch_all(&self, directories: Vec<PathBuf>) -> Result<(), String> {
            directories.into_iter().try_for_each(|directory| self.watch(directory))
        }

        fn watch(&self, directory: PathBuf) -> Result<(), String> {
            let flags = WatchFlags::CREATE
                | WatchFlags::DELETE
                | WatchFlags::MODIFY
                | WatchFlags::ATTRIB
                | WatchFlags::CLOSE_WRITE
                | WatchFlags::MOVE
                | WatchFlags::ONLYDIR
                | WatchFlags::DONT_FOLLOW
                | WatchFlags::EXCL_UNLINK;
            match inotify::add_watch(&self.descriptor, &directory, flags) {
                Ok(number) => {
                    self.state().directories.insert(number, directory);
                    Ok(())
                }
                // It is gone again, or cannot be read by a capture either.
                Err(Errno::NOENT | Errno::NOTDIR | Errno::ACCESS | Errno::LOOP) => Ok(()),
                Err(error) => Err(reason(error)),
            }
        }

        /// Reads events for ever.
        fn read(&self) {
            let mut buffer = [MaybeUninit::uninit(); 16 * 1024];
            let mut reader = Reader::new(&self.descriptor, &mut buffer);
            loop {
                let new = match reader.next() {
                    Ok(event) if event.events().contains(ReadFlags::IGNORED) => {
                        self.state().directories.remove(&event.wd());
                        continue;
                    }
                    Ok(event) => self.new_directory(
                        event.wd(),
                        event.events(),
                        event.file_name().map(|name| Path::new(std::ffi::OsStr::from_bytes(name.to_bytes()))),
                    ),
                    Err(Errno::INTR) => continue,
                    Err(error) => {
                        self.state().problem = Some(reason(error));
                        self.hint.notify_one();
                        return;
                    }
                };
                if let Some(new) = new {
                    let tree = self.state().tree.clone();
                    if let Err(problem) = self.watch_all(tree.directories_below(&new)) {
                        self.state().problem = Some(problem);
                    }
                }
                self.hint.notify_one();
            }
        }

        /// Returns the directory that an event reports as new.
        fn new_directory(&self, number: i32, events: ReadFlags, name: Option<&Path>) -> Option<PathBuf> {
            if !events.contains(ReadFlags::ISDIR)
                || !events.intersects(ReadFlags::CREATE | ReadFlags::MOVED_TO)
            {
                return None;
            }
            let state = self.state();
            let path = state.directories.get(&number)?.join(name?);
            state.tree.covers(&path).then_some(path)
        }
    }

    fn reason(error: Errno) -> String {
        match error {
            Errno::NOSPC => "the system allows no more watches (fs.inotify.max_user_watches)".to_owned(),
            Errno::MFILE => "the system allows no more watchers (fs.inotify.max_user_instances)".to_owned(),
            other => format!("the files cannot be watched: {other}"),
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod none {
    use super::super::tree::CoveredTree;

    /// A watcher, which this system does not have.
    #[derive(Debug)]
    pub(crate) enum Watcher {}

    impl Watcher {
        pub(crate) fn start(_: &CoveredTree) -> Result<Self, String> {
            Err("there is no watcher for this system".to_owned())
        }

        pub(crate) async fn hint(&self) {
            match *self {}
        }

        pub(crate) fn refresh(&self, _: &CoveredTree) -> Result<(), String> {
            match *self {}
        }
    }
}
