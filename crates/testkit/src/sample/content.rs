//! Content of sample journals: words, arguments, files.

use backstitch_core::budget::Amounts;
use backstitch_core::extra::Extra;
use backstitch_core::id::EvaluationId;
use backstitch_core::journal::{
    ApplyStarted, ProgramStarted, TaskFinished, WorkspaceIsolated, WorkspaceRoot,
};
use backstitch_core::message::Arguments;
use backstitch_core::object::{INLINE_LIMIT, Object, ObjectKind};
use backstitch_core::rng::Rng;
use backstitch_core::time::Timestamp;
use serde_json::json;

const WORDS: [&str; 24] = [
    "seam",
    "thread",
    "needle",
    "cloth",
    "hem",
    "the",
    "a",
    "is",
    "under",
    "over",
    "cut",
    "hold",
    "loose",
    "tight",
    "knot",
    "fold",
    "edge",
    "weave",
    "naïve",
    "\"quoted\"",
    "line\nbreak",
    "糸",
    "tab\there",
    "🧵",
];

const OPTIONS: [&str; 6] = ["read_file", "write_file", "search", "shell", "ask_expert", "measure"];

/// A word; some of them have quotes, breaks and letters beyond ASCII.
pub(super) fn word(rng: &mut Rng) -> &'static str {
    WORDS[rng.below(WORDS.len() as u64) as usize]
}

/// A text of this many words.
pub(super) fn sentence(rng: &mut Rng, words: usize) -> String {
    (0..words).map(|_| word(rng)).collect::<Vec<_>>().join(" ")
}

/// A text that is too large for a record.
pub(super) fn large_text(rng: &mut Rng) -> String {
    let line = sentence(rng, 12);
    line.repeat(INLINE_LIMIT / line.len() + 2)
}

/// The name of an option.
pub(super) fn option_name(rng: &mut Rng) -> &'static str {
    OPTIONS[rng.below(OPTIONS.len() as u64) as usize]
}

/// Arguments: compact, with the whitespace of a model, or (one in `unparsable`) invalid JSON.
pub(super) fn arguments(rng: &mut Rng, unparsable: u64) -> Arguments {
    let path = format!("src/{}.rs", rng.below(100));
    if unparsable > 0 && rng.below(unparsable) == 0 {
        return Arguments::from_text(format!("{{\"path\": \"{path}\", "));
    }
    match rng.below(3) {
        0 => Arguments::from_text(format!("{{ \"path\": \"{path}\",\n  \"line\": {} }}", rng.below(500))),
        _ => {
            let fields = json!({ "path": path, "line": rng.below(500), "text": sentence(rng, 6) });
            Arguments::from_object(fields.as_object().cloned().unwrap_or_default())
        }
    }
}

/// The root of a workspace, with its objects.
pub(super) fn workspace(rng: &mut Rng) -> (WorkspaceRoot, Vec<Object>) {
    let file = Object::blob(sentence(rng, 6).into_bytes());
    let mut entry = format!("100644 file-{}\0", rng.below(10)).into_bytes();
    entry.extend_from_slice(file.id().as_bytes());
    let tree = Object::new(ObjectKind::Tree, entry);
    let manifest = Object::blob(format!("{{\"modes\":{}}}", rng.below(3)).into_bytes());
    (WorkspaceRoot { tree: tree.id(), manifest: manifest.id() }, vec![file, tree, manifest])
}

/// The usage of a request.
pub(super) fn amounts(rng: &mut Rng) -> Amounts {
    Amounts {
        input_tokens: 100 + rng.below(4_000),
        output_tokens: 10 + rng.below(800),
        money_micros: rng.below(20_000),
        turns: 1,
        calls: 0,
        millis: rng.below(9_000),
        ..Amounts::ZERO
    }
}

/// The start of a program.
pub(super) fn program_started(
    evaluation_id: EvaluationId,
    turn: u64,
    source: &str,
    now: Timestamp,
) -> ProgramStarted {
    ProgramStarted {
        evaluation_id,
        turn,
        source: Some(source.into()),
        now,
        seed: turn,
        memory: None,
        interpreter: "sample/1".into(),
        inputs: None,
        extra: Extra::default(),
    }
}

/// The end of the first task of a program.
pub(super) fn task_finished(evaluation_id: EvaluationId, turn: u64, task: &str, root: u64) -> TaskFinished {
    TaskFinished {
        evaluation_id,
        turn,
        path: "0".into(),
        task: task.into(),
        value: json!({ "version": 1, "nodes": [], "root": root }).into(),
        extra: Extra::default(),
    }
}

/// A copy of a project with these files.
pub(super) fn isolated(root: WorkspaceRoot) -> WorkspaceIsolated {
    WorkspaceIsolated {
        project: "/home/ada/coat".into(),
        directory: "/home/ada/copies/coat".into(),
        root,
        coverage: None,
        left_out: Vec::new(),
        extra: Extra::default(),
    }
}

/// The beginning of applying the changes of a copy, which has none.
pub(super) fn apply_started(root: WorkspaceRoot) -> ApplyStarted {
    ApplyStarted {
        directory: "/home/ada/coat".into(),
        base: root,
        result: root,
        before: root,
        coverage: None,
        after: root,
        next_base: root,
        undoes: None,
        extra: Extra::default(),
    }
}
