//! Reading files that people name.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

/// The text of a file that has at most so many bytes. A longer one, such as a device that never ends, is refused once that many
/// bytes were read.
pub fn read_text(path: impl AsRef<Path>, most: u64) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(most.saturating_add(1)).read_to_string(&mut text)?;
    if text.len() as u64 > most {
        let message = format!("it has more than {most} bytes, which is the most that is read of it");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    Ok(text)
}
