//! A directory with many small files, some of which change.

use std::fs;
use std::path::{Path, PathBuf};

/// Files with known names and content, all below `root`.
pub(super) struct Files {
    root: PathBuf,
    count: usize,
    round: usize,
}

impl Files {
    pub(super) fn make(root: PathBuf, count: usize) -> Self {
        let files = Self { root, count, round: 0 };
        (0..count).for_each(|number| files.write(number));
        files
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// Changes `count` files, most of them in different directories.
    pub(super) fn change(&mut self, count: usize) {
        self.round += 1;
        self.changed(count).for_each(|number| self.write(number));
    }

    /// Reads the files that the last change has changed. Returns the number of bytes.
    pub(super) fn read_changed(&self, count: usize) -> usize {
        let read = |number| fs::read(self.path(number)).expect("a file can be read").len();
        self.changed(count).map(read).sum()
    }

    /// The numbers of the files that this round changes.
    fn changed(&self, count: usize) -> impl Iterator<Item = usize> {
        (0..count).map(|at| (at * 97 + self.round * 31) % self.count)
    }

    fn path(&self, number: usize) -> PathBuf {
        self.root.join(format!("d{}/e{}/file{number}.txt", number % 20, number / 20 % 20))
    }

    fn write(&self, number: usize) {
        let path = self.path(number);
        fs::create_dir_all(path.parent().expect("it is below the root")).expect("a directory can be made");
        let round = self.round;
        let line =
            format!("file {number} in round {round}: a line of text that is about as long as lines are\n");
        fs::write(path, line.repeat(10 + number % 40)).expect("a file can be written");
    }
}

/// Reads each name and its metadata: the least that finding changes can cost. Returns the number of entries.
pub(crate) fn walk(directory: &Path) -> u64 {
    let mut count = 0;
    for entry in fs::read_dir(directory).expect("a directory can be read") {
        let entry = entry.expect("a name can be read");
        let found = entry.metadata().expect("what is there has a stat");
        count += 1;
        if found.is_dir() && entry.file_name() != ".git" {
            count += walk(&entry.path());
        }
    }
    count
}
