//! `blame`: which call wrote each line of a file.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use backstitch::SystemClock;
use backstitch::report::{BlameReport, BlamedLine};
use backstitch::time::{Clock as _, Timestamp};
use clap::Args;

use crate::common::Common;
use crate::error::{CommandError, ErrorCode};
use crate::open::{OpenStore, short};
use crate::report::{Report, ReportLine};
use crate::terminal::time::relative;
use crate::terminal::{Pager, Role, Text};

/// The largest file that is read, in bytes.
const LARGEST: u64 = 16 * 1024 * 1024;

/// Columns of a question beside a line.
const QUESTION: usize = 24;

#[derive(Args)]
pub(crate) struct Blame {
    /// File in the current directory.
    #[arg(value_name = "PATH")]
    path: PathBuf,
}

impl Blame {
    pub(crate) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        let text = self.text()?;
        let path = self.path.canonicalize()?;
        let place = OpenStore::existing(common)?;
        let report = place.runtime.blame(&path, &text).await?;
        let now = SystemClock::default().now();
        let _pager = Pager::new();
        let lines = report.lines.iter().map(|line| ReportLine::Text(line_text(&report, line, now)));
        Ok(Report::new(&report).lines(lines).print(common))
    }

    fn text(&self) -> anyhow::Result<String> {
        let path = self.path.display();
        let refused = |why: &str| CommandError::new(ErrorCode::FileNotFound, format!("{path} {why}"));
        let metadata = std::fs::metadata(&self.path).with_context(|| format!("{path} cannot be read"))?;
        if !metadata.is_file() {
            return Err(refused("is not an ordinary file").into());
        }
        if metadata.len() > LARGEST {
            return Err(refused("is larger than 16 MiB").into());
        }
        let bytes = std::fs::read(&self.path).with_context(|| format!("{path} cannot be read"))?;
        Ok(String::from_utf8(bytes).map_err(|_| refused("is not UTF-8 text"))?)
    }
}

/// Formats a line: the session and the call that wrote it, its age, the question, and the line itself.
fn line_text(report: &BlameReport, line: &BlamedLine, now: Timestamp) -> Text {
    let origin = match report.call_of(line) {
        Some(call) => {
            let question = Text::from(call.question.as_deref().unwrap_or_default()).cut(QUESTION);
            let missing = QUESTION.saturating_sub(question.width());
            Text::new()
                .add(Role::Id, short(call.session))
                .plain(" ")
                .add(Role::Accent, short(call.call))
                .add(Role::Dim, format!(" {:<11} ", relative(call.at, now)))
                .join(question)
                .spaces(missing)
        }
        None => Text::new().spaces(12 + 1 + 12 + 13 + QUESTION),
    };
    origin.add(Role::Dim, format!(" {:>5} ", line.number)).plain(&line.text)
}
