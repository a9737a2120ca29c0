//! `!COMMAND`: a command of the person, in the directory of the agent.
//!
//! It runs as in a shell: it is neither confined nor asked about, and has the environment of the person. Its output is printed, and is
//! recorded with the session as a note. The model gets it only with the next message, as a part of that message which the person can read
//! (`/show`). API keys are removed from what is recorded and sent. What the command changes in the files belongs to the person: a rewind
//! leaves it as it is.

use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use anyhow::Context as _;
use backstitch::CancellationToken;
use backstitch::host::one_line;
use backstitch::journal::Note;
use backstitch::secrets::Secrets;
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};
use tokio::process::Command;
use tokio::signal::unix::SignalKind;
use tokio::sync::mpsc::{Sender, channel};
use tokio::time::{Instant, sleep_until};

use super::conversation::{Conversation, Flow};
use crate::keys;
use crate::open::Signals;

/// The most bytes of an output that are recorded and sent, of its beginning and of its end.
const KEPT: usize = 16 * 1024;

/// The most bytes of a line that is printed.
const LONGEST_LINE: usize = 64 * 1024;

/// How long the rest of the output is waited for after the command has ended. A process in the background may keep it open.
const REST: Duration = Duration::from_millis(300);

/// The topic of the notes about commands of a person.
const TOPIC: &str = "person_command";

/// A command that was run, as it is recorded and sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PersonCommand {
    command: String,
    /// How it ended, in words.
    end: String,
    output: String,
}

impl PersonCommand {
    fn note(&self) -> Note {
        let text = format!("{}: {}", one_line(&self.command, 100), self.end);
        Note::new(TOPIC, text)
            .with_data(json!({"command": self.command, "end": self.end, "output": self.output}))
    }

    /// Returns the part of a message that tells the model about it.
    pub(super) fn text(&self) -> String {
        let Self { command, end, output } = self;
        let break_at_end = if output.is_empty() || output.ends_with('\n') { "" } else { "\n" };
        format!("<command_of_the_user>\n$ {command}\n{output}{break_at_end}({end})\n</command_of_the_user>")
    }
}

/// The beginning and the end of an output.
#[derive(Default)]
struct KeptOutput {
    first: String,
    last: String,
    left_out: usize,
}

impl KeptOutput {
    fn add(&mut self, line: &str) {
        if self.last.is_empty() && self.first.len() + line.len() <= KEPT {
            self.first.push_str(line);
            return;
        }
        self.last.push_str(line);
        let mut over = self.last.len().saturating_sub(KEPT);
        while !self.last.is_char_boundary(over) {
            over += 1;
        }
        self.left_out += over;
        self.last.drain(..over);
    }

    fn text(self) -> String {
        match self.left_out {
            0 => self.first + &self.last,
            bytes => format!("{}\n… {bytes} bytes left out …\n{}", self.first, self.last),
        }
    }
}

impl Conversation {
    /// Runs a command of the person, prints its output, and keeps it for the next message.
    pub(super) async fn run_command(&mut self, command: &str) -> anyhow::Result<Flow> {
        let command = command.trim();
        if command.is_empty() {
            eprintln!("type a command after the `!`; it runs in the directory of the agent");
            return Ok(Flow::Continue);
        }
        let directory = match &self.definition.workspace.path {
            Some(directory) => directory.clone(),
            None => std::env::current_dir()?,
        };
        let (done, flow) = execute(command, directory).await?;
        if let (Some(place), Some(session)) = (&self.place, self.session) {
            place
                .runtime
                .add_note(session, done.note())
                .await
                .context("the command ran, and was not recorded")?;
        } else {
            self.unrecorded.push(done.note());
        }
        eprintln!("{}; the next message takes the output with it", done.end);
        self.commands.push(done);
        Ok(flow)
    }

    /// Records the commands that ran before the session existed.
    pub(super) async fn record_commands(&mut self) -> anyhow::Result<()> {
        let notes = std::mem::take(&mut self.unrecorded);
        if let (Some(place), Some(session)) = (&self.place, self.session) {
            for note in notes {
                place.runtime.add_note(session, note).await?;
            }
        }
        Ok(())
    }
}

/// Runs a command, and returns what follows: a signal may ask the process to end meanwhile.
async fn execute(command: &str, directory: PathBuf) -> anyhow::Result<(PersonCommand, Flow)> {
    // Ctrl-C is for the command.
    let mut signals = Signals::listen().context("signals cannot be handled here")?;
    let mut child = Command::new("sh")
        .arg("-c")
        .arg(command)
        .current_dir(&directory)
        .envs(keys::variables())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .with_context(|| format!("the command cannot be started in {}", directory.display()))?;
    // Bounded: a command that prints faster than the terminal shows has to wait.
    let (send, mut lines) = channel(64);
    let over = CancellationToken::new();
    for stream in [child.stdout.take().map(Stream::Output), child.stderr.take().map(Stream::Errors)] {
        match stream {
            Some(Stream::Output(stream)) => {
                drop(tokio::spawn(read_lines(stream, send.clone(), over.clone())))
            }
            Some(Stream::Errors(stream)) => {
                drop(tokio::spawn(read_lines(stream, send.clone(), over.clone())))
            }
            None => {}
        }
    }
    drop(send);
    let (mut kept, mut are_open) = (KeptOutput::default(), true);
    let (mut is_interrupted, mut flow) = (false, Flow::Continue);
    // How the command ended, and until when the rest of its output is waited for.
    let mut ended: Option<(ExitStatus, Instant)> = None;
    let status = loop {
        if let Some((status, _)) = ended
            && !are_open
        {
            break status;
        }
        let deadline = ended.map_or_else(Instant::now, |(_, deadline)| deadline);
        tokio::select! {
            line = lines.recv(), if are_open => match line {
                Some(line) => {
                    print!("{line}");
                    kept.add(&line);
                }
                None => are_open = false,
            },
            status = child.wait(), if ended.is_none() => ended = Some((status?, Instant::now() + REST)),
            // What is written already is still read.
            () = sleep_until(deadline), if ended.is_some() && !over.is_cancelled() => over.cancel(),
            signal = signals.next() => {
                let is_interrupt = signal == SignalKind::interrupt();
                if [SignalKind::terminate(), SignalKind::hangup()].contains(&signal) {
                    flow = Flow::Stopped;
                }
                // The command got the first Ctrl-C too, and decides what to do.
                if flow == Flow::Stopped || (is_interrupt && is_interrupted) {
                    let _ = child.start_kill();
                }
                is_interrupted |= is_interrupt;
            }
        }
    };
    let secrets = Secrets::new(keys::all());
    let output = secrets.redact(&kept.text()).into_owned();
    let end = match status.code() {
        Some(code) => format!("exit code {code}"),
        None => "ended by a signal".to_owned(),
    };
    Ok((PersonCommand { command: secrets.redact(command).into_owned(), end, output }, flow))
}

/// A stream of a command.
enum Stream {
    Output(tokio::process::ChildStdout),
    Errors(tokio::process::ChildStderr),
}

/// Sends the lines of a stream. One that is too long is sent in parts, and bytes that are not text are replaced. Once the wait for the rest
/// is over, and what was written before is sent, they are read and dropped: a process in the background would fail to write otherwise.
async fn read_lines(stream: impl AsyncRead + Unpin, send: Sender<String>, over: CancellationToken) {
    let mut stream = BufReader::with_capacity(LONGEST_LINE, stream);
    // A pipe holds so much, and the buffer too. Without a limit, a process that prints for ever would be waited for.
    let (mut send, mut rest) = (Some(send), 2 * LONGEST_LINE);
    loop {
        tokio::select! {
            biased;
            read = stream.fill_buf() => if !read.is_ok_and(|bytes| !bytes.is_empty()) {
                return;
            },
            () = over.cancelled(), if send.is_some() => {
                send = None;
                continue;
            }
        }
        let bytes = stream.buffer();
        let end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(bytes.len(), |at| at + 1);
        if let Some(to) = &send {
            let _ = to.send(String::from_utf8_lossy(&bytes[..end]).into_owned()).await;
        }
        stream.consume(end);
        rest = if over.is_cancelled() { rest.saturating_sub(end) } else { rest };
        send = send.filter(|_| rest > 0);
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    #[tokio::test]
    async fn what_was_written_before_the_wait_was_over_is_read() {
        let (mut writer, reader) = tokio::io::duplex(1024);
        writer.write_all(b"one\ntwo").await.unwrap();
        let (send, mut lines) = channel(64);
        let over = CancellationToken::new();
        over.cancel();
        let reading = tokio::spawn(read_lines(reader, send, over));
        let mut text = String::new();
        while let Some(line) = lines.recv().await {
            text += &line;
        }
        assert_eq!(text, "one\ntwo");
        // A process in the background can still write.
        writer.write_all(&[b'x'; 4096]).await.unwrap();
        drop(writer);
        reading.await.unwrap();
    }

    #[tokio::test]
    async fn a_process_that_prints_for_ever_is_not_waited_for() {
        let (send, mut lines) = channel(64);
        let over = CancellationToken::new();
        over.cancel();
        let endless = tokio::io::repeat(b'x').take(100 * LONGEST_LINE as u64);
        let reading = tokio::spawn(read_lines(endless, send, over));
        let mut length = 0;
        while let Some(line) = lines.recv().await {
            length += line.len();
        }
        assert_eq!(length, 2 * LONGEST_LINE);
        reading.await.unwrap();
    }

    #[test]
    fn a_long_output_keeps_its_beginning_and_its_end() {
        let mut kept = KeptOutput::default();
        kept.add("first\n");
        for _ in 0..10_000 {
            kept.add("ä line in the middle\n");
        }
        kept.add("last\n");
        let text = kept.text();
        assert!(text.starts_with("first\n") && text.ends_with("last\n"), "{}", text.len());
        assert!(text.contains("bytes left out") && text.len() < 2 * KEPT + 100, "{}", text.len());
    }
}
