//! Processes that are measured: what they print, and what they use.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use crate::agent::Failed;

/// The longest wait for a line. A system that takes longer has no rows.
const PATIENCE: Duration = Duration::from_secs(300);

/// A process that is killed when it is dropped.
pub(super) struct Worker {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
}

impl Worker {
    pub(super) fn start(mut command: Command) -> Result<Self, Failed> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let (send, lines) = channel();
        if let Some(output) = output {
            std::thread::spawn(move || {
                let read = BufReader::new(output).lines().map_while(Result::ok);
                // Once nobody waits for lines, the rest is read and dropped, so that the process does not block.
                read.for_each(|line| _ = send.send(line));
            });
        }
        Ok(Self { child, input, lines })
    }

    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(super) fn send(&mut self, line: &str) -> Result<(), Failed> {
        let input = self.input.as_mut().ok_or("its input is closed")?;
        writeln!(input, "{line}")?;
        Ok(input.flush()?)
    }

    /// Waits for a line with this word alone.
    pub(super) fn wait_for(&mut self, word: &str) -> Result<(), Failed> {
        loop {
            match self.lines.recv_timeout(PATIENCE) {
                Ok(line) if line == word => return Ok(()),
                Ok(_) => {}
                Err(error) => return Err(format!("its process did not print {word:?}: {error}").into()),
            }
        }
    }

    /// Closes the input, and waits for the end.
    pub(super) fn end(mut self) -> Result<(), Failed> {
        self.input = None;
        let status = self.child.wait()?;
        if status.success() { Ok(()) } else { Err(status.to_string().into()) }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What processes have used so far, as the system reports it.
#[derive(Default)]
pub(super) struct Usage {
    /// Its resolution is 10 ms.
    pub(super) processor: Duration,
    /// Bytes that were written to a disk.
    pub(super) written: u64,
}

impl Usage {
    pub(super) fn of(processes: &[u32]) -> Self {
        let mut all = Self::default();
        for process in processes {
            let read =
                |name: &str| std::fs::read_to_string(format!("/proc/{process}/{name}")).unwrap_or_default();
            // The name in parentheses may hold anything. 11 fields after it are the times in user mode and in the kernel.
            let stat = read("stat");
            let fields = stat.rsplit_once(") ").map_or("", |(_, fields)| fields).split(' ').skip(11).take(2);
            let ticks: u64 = fields.filter_map(|field| field.parse::<u64>().ok()).sum();
            all.processor += Duration::from_millis(ticks * 10);
            let io = read("io");
            let written = io.lines().find_map(|line| line.strip_prefix("write_bytes: ")?.parse::<u64>().ok());
            all.written += written.unwrap_or(0);
        }
        all
    }

    pub(super) fn add(&mut self, more: &Self) {
        self.processor += more.processor;
        self.written += more.written;
    }

    pub(super) fn since(&self, before: &Self) -> Self {
        Self {
            processor: self.processor.saturating_sub(before.processor),
            written: self.written.saturating_sub(before.written),
        }
    }
}

/// Adds up the lengths of the files below a directory.
pub(super) fn size_of(directory: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(directory) else { return 0 };
    let size = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(found) if found.is_dir() => size_of(&entry.path()),
        Ok(found) if found.is_file() => found.len(),
        _ => 0,
    };
    entries.flatten().map(size).sum()
}

pub(super) fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
