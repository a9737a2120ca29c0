//! `backstitch lisp repl`.
//!
//! A form may span lines: it is evaluated once it is complete. Definitions persist between entries, except
//! those of a failed entry. `*1`, `*2` and `*3` are the last values. A line that is one of the commands below
//! is not evaluated.

use std::borrow::Cow;
use std::io::IsTerminal as _;
use std::process::ExitCode;

use anyhow::Context;
use backstitch_lisp::{Completeness, Engine, Inputs, Memory, ReadLimits, Value, completeness, type_label};
use rustyline::error::ReadlineError;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Completer, Editor, Helper, Highlighter, Hinter};

use super::{ProgramInput, now_millis, program};
use crate::terminal;

/// Number of earlier values that are kept as `*1`, `*2` and so on.
const REMEMBERED: usize = 3;

const HELP: &str = "\
:doc NAME   describe a name; (doc NAME) does the same
:names      list every name of the library
:defs       list the definitions of this session
:quit       quit, as Ctrl-D does";

#[derive(Helper, Completer, Hinter, Highlighter)]
struct WholeForms;

impl Validator for WholeForms {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        Ok(match completeness(context.input(), &ReadLimits::default()) {
            Completeness::Incomplete(_) => ValidationResult::Incomplete,
            _ => ValidationResult::Valid(None),
        })
    }
}

/// State that persists between entries.
struct Repl {
    engine: Engine,
    given: Inputs,
    memory: Memory,
    history: Vec<Value>,
}

pub(super) fn run(given: &ProgramInput) -> anyhow::Result<ExitCode> {
    let mut editor: Editor<WholeForms, _> = Editor::new().context("cannot use this terminal")?;
    editor.set_helper(Some(WholeForms));
    let inputs = Inputs { data: given.data()?, limits: given.limits(), ..Inputs::default() };
    let mut repl = Repl { engine: Engine::new(), given: inputs, memory: Memory::new(), history: Vec::new() };
    println!("Backstitch's agent language. :help lists commands, Ctrl-D quits.");
    // The editor would print a prompt to a pipe where the terminal is one that it does not know.
    let prompt = if std::io::stdin().is_terminal() { "user=> " } else { "" };
    loop {
        match editor.readline(prompt) {
            Ok(line) if line.trim().is_empty() => {}
            Ok(line) => {
                // The history of the editor is a convenience: its errors are ignored.
                let _ = editor.add_history_entry(line.as_str());
                match command(&repl, line.trim()) {
                    Some(Cow::Borrowed(":quit")) => break,
                    Some(text) => terminal::data(&format!("{text}\n")),
                    None => repl.evaluate(&line),
                }
            }
            Err(ReadlineError::Interrupted) => println!("(interrupted; Ctrl-D quits)"),
            Err(ReadlineError::Eof) => break,
            Err(error) => return Err(error).context("cannot read from this terminal"),
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs a command and returns its output; `None` if the line is a program.
fn command(repl: &Repl, line: &str) -> Option<Cow<'static, str>> {
    // `(doc NAME)` works as in Clojure's REPL, although programs cannot call it.
    let line = line
        .strip_prefix("(doc ")
        .and_then(|rest| rest.strip_suffix(')'))
        .map_or(line.into(), |name| format!(":doc {name}"));
    let (command, rest) = line.split_once(char::is_whitespace).unwrap_or((&line, ""));
    Some(match command {
        ":quit" | ":exit" => ":quit".into(),
        ":help" => HELP.into(),
        ":names" => repl.engine.names().join(" ").into(),
        ":defs" => {
            let names: Vec<_> = repl.memory.definitions().iter().map(|one| one.name.to_string()).collect();
            names.join(" ").into()
        }
        ":doc" => doc(repl, rest.trim()).into(),
        _ => return None,
    })
}

fn doc(repl: &Repl, name: &str) -> String {
    if let Some(definition) = repl.memory.get(name.strip_prefix("user/").unwrap_or(name)) {
        let doc = definition.doc.as_deref().unwrap_or("no docstring");
        let what = match &definition.value {
            Value::Closure(function) => {
                let arities: Vec<String> =
                    function.parameters().map(|parameters| format!("({name} {parameters})")).collect();
                arities.join(" ")
            }
            other => type_label(other).to_string(),
        };
        return format!("{name}: {what}\n  {doc}");
    }
    match repl.engine.doc(name) {
        Some(doc) => format!("{name}: {doc}"),
        None => format!("there is no {name:?}; :names lists what there is"),
    }
}

impl Repl {
    fn evaluate(&mut self, source: &str) {
        let inputs = Inputs {
            memory: self.memory.clone(),
            history: self.history.clone(),
            now: now_millis(),
            ..self.given.clone()
        };
        let finished = match program::evaluate(&self.engine, source, inputs) {
            Ok(finished) => finished,
            Err(error) => return eprintln!("{}", error.render()),
        };
        for print in &finished.prints {
            terminal::data(&format!("{print}\n"));
        }
        match finished.result {
            Ok(value) => {
                match program::edn(&value) {
                    Ok(text) => terminal::data(&format!("{text}\n")),
                    Err(error) => eprintln!("{}", error.render()),
                }
                self.memory = finished.memory;
                self.history.push(value);
                let surplus = self.history.len().saturating_sub(REMEMBERED);
                self.history.drain(..surplus);
            }
            Err(error) => eprintln!("{}", error.render()),
        }
    }
}
