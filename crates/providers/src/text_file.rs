//! Reading of files that users name, within limits.
//!
//! A path may be a device without an end, or a pipe without a writer. Every text has a maximum size, and the
//! end of anything but a regular file has to be reached within [`PATIENCE`].

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

/// How long a pipe or a device may take to reach its end.
const PATIENCE: Duration = Duration::from_secs(10);

/// Reads the text of a file of at most `most` bytes.
///
/// Fails with `FileTooLarge` if it is longer, with `InvalidData` if it is not UTF-8, and with `TimedOut` if a
/// pipe or a device does not end within ten seconds.
pub fn read_text(path: impl AsRef<Path>, most: u64) -> io::Result<String> {
    let path = path.as_ref();
    let metadata = std::fs::metadata(path)?;
    if metadata.is_file() {
        if metadata.len() > most {
            return Err(too_large(most));
        }
        return text_of(File::open(path)?, most);
    }
    // Opening a pipe waits for its writer. The waiting thread ends with the process.
    let (done, read) = mpsc::channel();
    let path = path.to_owned();
    std::thread::spawn(move || {
        // The receiver may have given up.
        let _ = done.send(File::open(path).and_then(|file| text_of(file, most)));
    });
    read.recv_timeout(PATIENCE).unwrap_or_else(|_| {
        let message = format!("it did not end within {} seconds", PATIENCE.as_secs());
        Err(io::Error::new(io::ErrorKind::TimedOut, message))
    })
}

/// Reads a text of at most `most` bytes to its end. Fails like [`read_text`], but without a timeout.
pub fn text_of(source: impl Read, most: u64) -> io::Result<String> {
    let mut bytes = Vec::new();
    source.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(too_large(most));
    }
    let not_text = |_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8 text");
    String::from_utf8(bytes).map_err(not_text)
}

fn too_large(most: u64) -> io::Error {
    const MIB: u64 = 1 << 20;
    let size = match most {
        MIB.. if most.is_multiple_of(MIB) => format!("{} MiB", most / MIB),
        _ => format!("{most} bytes"),
    };
    io::Error::new(io::ErrorKind::FileTooLarge, format!("it is larger than {size}"))
}
