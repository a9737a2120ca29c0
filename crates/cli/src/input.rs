//! Reading files that a person names, none of which may be endless.
//!
//! A path may lead to a device that never ends, or to a pipe that nobody writes to. What is read has a largest size, and what
//! is no ordinary file has to end within [`PATIENCE`].

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use anyhow::{Context, bail};

/// How long a pipe or a device may take to come to its end.
const PATIENCE: Duration = Duration::from_secs(10);

/// The text of a file of at most `most` bytes.
pub(crate) fn read_text(path: &Path, most: usize) -> anyhow::Result<String> {
    let shown = path.display();
    let about = std::fs::metadata(path).with_context(|| format!("cannot read {shown}"))?;
    if about.is_file() {
        if about.len() > most as u64 {
            return Err(too_large(most)).with_context(|| format!("cannot read {shown}"));
        }
        let file = File::open(path).with_context(|| format!("cannot read {shown}"))?;
        return text_of(file, most).with_context(|| format!("cannot read {shown}"));
    }
    // Opening a pipe waits for whoever writes to it. The thread that waits ends with the process.
    let (done, read) = mpsc::channel();
    let owned = path.to_owned();
    std::thread::spawn(move || {
        let text = File::open(owned).map_err(anyhow::Error::from).and_then(|file| text_of(file, most));
        // Nobody may be waiting any more.
        let _ = done.send(text);
    });
    match read.recv_timeout(PATIENCE) {
        Ok(text) => text.with_context(|| format!("cannot read {shown}")),
        Err(_) => bail!("cannot read {shown}: it did not end within {} seconds", PATIENCE.as_secs()),
    }
}

/// The text of what is read to its end, of at most `most` bytes.
pub(crate) fn text_of(source: impl Read, most: usize) -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    source.take(most as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > most {
        return Err(too_large(most));
    }
    String::from_utf8(bytes).context("it is not UTF-8 text")
}

fn too_large(most: usize) -> anyhow::Error {
    anyhow::anyhow!("it is larger than {} MiB", most >> 20)
}
