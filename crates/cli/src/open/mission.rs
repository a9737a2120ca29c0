//! The text of a mission or a question: an argument, a file, or standard input.
//!
//! Blank text is refused, and so is text that is not UTF-8, before anything is created.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use backstitch::providers::text_of;

use crate::usage::Usage;

/// Maximum size of a mission in bytes.
const MOST: u64 = 32 * 1024 * 1024;

/// Argument that stands for standard input.
pub(crate) const STDIN: &str = "-";

/// Returns the text of an argument; `-` reads standard input.
pub(crate) fn of_argument(name: &str, argument: String) -> Result<String, Usage> {
    if argument == STDIN {
        return checked("standard input", &mut io::stdin().lock());
    }
    not_blank(name, argument)
}

/// Returns the text of a file.
pub(crate) fn of_file(path: &Path) -> Result<String, Usage> {
    let name = path.display().to_string();
    let mut file = File::open(path).map_err(|error| Usage(format!("{name} cannot be opened: {error}")))?;
    checked(&name, &mut file)
}

fn checked(name: &str, from: &mut dyn Read) -> Result<String, Usage> {
    let text = text_of(from, MOST).map_err(|error| Usage(format!("{name} cannot be read: {error}")))?;
    not_blank(name, text)
}

fn not_blank(name: &str, text: String) -> Result<String, Usage> {
    if text.trim().is_empty() {
        return Err(Usage(format!("{name} is empty: write a question or a task")));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blank_missions_and_other_bytes_are_refused() {
        for text in ["", " ", "\n\t\u{a0}"] {
            assert!(of_argument("MISSION", text.to_owned()).unwrap_err().0.contains("MISSION is empty"));
            assert!(checked("a file", &mut text.as_bytes()).unwrap_err().0.contains("a file is empty"));
        }
        assert!(checked("a file", &mut &[0xff, 0xfe][..]).unwrap_err().0.contains("not UTF-8"));
        assert!(checked("a file", &mut io::repeat(b'x')).unwrap_err().0.contains("32 MiB"));
        assert!(of_file(Path::new("/missing/file")).unwrap_err().0.contains("cannot be opened"));
        assert_eq!(of_argument("MISSION", " mend ".to_owned()).unwrap(), " mend ");
        let large = "x".repeat(10_000_000);
        assert_eq!(checked("a file", &mut large.as_bytes()).unwrap().len(), large.len());
    }
}
