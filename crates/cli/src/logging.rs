//! The log of the command: what its libraries do, for people who look for a cause.
//!
//! Nothing is logged by default. `--verbose` logs to standard error, `--log-file` to a file; `RUST_LOG` selects in detail. Nothing is ever
//! logged to standard output, and API keys are removed from every line.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::Mutex;

use anyhow::Context as _;
use tracing_subscriber::fmt::format::FmtSpan;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _};

use crate::common::Common;
use crate::keys;
use crate::telemetry::Telemetry;
use crate::terminal::{self, style};
use crate::usage::Usage;

/// What stands in the log instead of a key.
const REMOVED: &str = "[key]";

/// Starts to log, and to export the spans of a command that drives sessions, where that is wanted.
pub(crate) fn set_up(common: &Common, drives: bool) -> anyhow::Result<Telemetry> {
    let filter = filter(common)?;
    let telemetry = if drives { Telemetry::start(common.quiet) } else { Telemetry::default() };
    let spans = telemetry.layer();
    if filter.is_none() && spans.is_none() {
        return Ok(telemetry);
    }
    let log = match filter {
        Some(filter) => {
            let file = common.log_file.as_deref().map(open_log).transpose()?;
            let is_dim = file.is_none() && style::stderr_has_colors();
            let events = if common.verbose > 1 { FmtSpan::NEW | FmtSpan::CLOSE } else { FmtSpan::CLOSE };
            let layer = tracing_subscriber::fmt::layer()
                .with_span_events(events)
                // Colours are removed with everything else that would control a terminal.
                .with_ansi(false)
                .with_writer(Mutex::new(LogWriter { file, keys: keys::all(), is_dim }));
            Some(layer.with_filter(filter))
        }
        None => None,
    };
    tracing_subscriber::registry().with(spans).with(log).init();
    Ok(telemetry)
}

/// What is logged: what `RUST_LOG` says, else the spans and warnings of this project.
fn filter(common: &Common) -> anyhow::Result<Option<EnvFilter>> {
    let directives = match std::env::var("RUST_LOG").ok().filter(|text| !text.trim().is_empty()) {
        Some(directives) => directives,
        None if common.verbose == 0 && common.log_file.is_none() => return Ok(None),
        None if common.verbose > 1 => "warn,backstitch=debug".to_owned(),
        None => "warn,backstitch=info".to_owned(),
    };
    let parsed = EnvFilter::try_new(&directives);
    let wrong = |error| Usage(format!("RUST_LOG={directives:?} cannot be read: {error}"));
    Ok(Some(parsed.map_err(wrong)?))
}

/// Opens a log file, which only its user can read if it is created.
fn open_log(path: &Path) -> anyhow::Result<File> {
    let opened = OpenOptions::new().create(true).append(true).mode(0o600).open(path);
    opened.with_context(|| format!("the log file {} cannot be opened", path.display()))
}

/// Writes lines of the log to a file, or to standard error.
struct LogWriter {
    file: Option<File>,
    keys: Vec<String>,
    is_dim: bool,
}

impl Write for LogWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = without_keys(&String::from_utf8_lossy(bytes), &self.keys);
        match &mut self.file {
            Some(file) => file.write_all(terminal::safe(&text).as_bytes())?,
            None if self.is_dim => {
                let dim = |line: &str| style::Text::new().add(style::Role::Dim, line);
                text.lines().for_each(|line| terminal::error_line(&dim(line)));
            }
            None => terminal::to_stderr(format_args!("{text}")),
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn without_keys(text: &str, keys: &[String]) -> String {
    keys.iter().fold(text.to_owned(), |text, key| text.replace(key.as_str(), REMOVED))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_removed_from_every_line() {
        let keys = ["sk-one".to_owned(), "sk-two".to_owned()];
        assert_eq!(without_keys("Bearer sk-two, sk-one\n", &keys), "Bearer [key], [key]\n");
    }
}
