//! The two streams of the command.
//!
//! Standard output goes to the pager while there is one. If the reader has closed the pipe, as `head` does,
//! the command exits as SIGPIPE would end it, and a session that it drives can be resumed. Any other error of it ends the command too, with a message. The status line is erased first.

use std::io::{self, Write as _};

use super::{draft, pager, status};

/// Exit code that a shell reports for a program that SIGPIPE ended.
const BROKEN_PIPE: i32 = 141;

/// Exit code of a command whose output cannot be written.
const UNWRITABLE: i32 = 1;

/// Writes bytes, which have to be escaped, to standard output or to the pager.
pub(super) fn stdout(bytes: &[u8]) {
    draft::erase();
    if !pager::takes(bytes) {
        directly(bytes);
    }
}

/// Writes bytes to standard output, whether there is a pager or not.
pub(super) fn directly(bytes: &[u8]) {
    let _printing = status::print();
    check(io::stdout().lock().write_all(bytes), "stdout");
}

/// Writes bytes, which have to be escaped, to standard error.
pub(super) fn stderr(bytes: &[u8]) {
    draft::erase();
    let _printing = status::print();
    check(io::stderr().lock().write_all(bytes), "stderr");
}

/// Flushes standard output.
pub(super) fn flush() {
    check(io::stdout().lock().flush(), "stdout");
}

fn check(result: io::Result<()>, stream: &str) {
    match result {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => std::process::exit(BROKEN_PIPE),
        // An error of stderr cannot be reported anywhere.
        Err(_) if stream == "stderr" || std::thread::panicking() => {}
        // Such as a full disk. What a session has done so far is durable, and it can be resumed.
        Err(error) => {
            let hint = "code: io; `backstitch explain io` says more";
            let message = format!("error: standard output cannot be written: {error}\n{hint}\n");
            let _ = io::stderr().lock().write_all(message.as_bytes());
            std::process::exit(UNWRITABLE);
        }
    }
}
