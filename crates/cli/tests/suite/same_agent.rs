//! An agent file is the same agent in a Rust program and in the command: its files, excludes, copies, set-up, sub-agents and
//! MCP servers.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use backstitch::agent_file::{AgentDefinition, BuildOptions};
use backstitch::journal::WorkspaceRoot;
use backstitch::prelude::*;
use serde_json::{Value, json};

use crate::stage::{Stage, text_of};

/// An MCP server that writes a file in its directory, and answers with the names of the files there.
const SERVER: &str = r#"
while read -r line; do
    id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
    answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
    case "$line" in
    *'"initialize"'*)
        answer '{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"place","version":"1"}}' ;;
    *'"tools/list"'*)
        answer '{"tools":[{"name":"mark","description":"Marks its directory.","inputSchema":{"type":"object"}}]}' ;;
    *'"tools/call"'*)
        echo marked > marked.txt
        answer "{\"content\":[{\"type\":\"text\",\"text\":\"$(ls | tr '\n' ' ')\"}]}" ;;
    esac
done
"#;

/// What came of a session, without ids, times and the places of its directories.
#[derive(Debug, PartialEq)]
struct Outcome {
    /// The records of the session, and those of its sub-agent.
    records: Vec<Vec<Value>>,
    files: BTreeMap<PathBuf, String>,
    root: Option<WorkspaceRoot>,
    project: BTreeMap<PathBuf, String>,
}

/// Writes a project and an agent file beside it, and returns the path of the file.
fn agent_file(stage: &Stage, workspace: &str) -> String {
    let files = stage.path("files");
    std::fs::create_dir(files.join("cache")).unwrap();
    std::fs::write(files.join("cache/old.txt"), "old\n").unwrap();
    std::fs::write(files.join("coat.txt"), "a coat\n").unwrap();
    let call = |name: &str, arguments: Value| json!({"calls": [{"name": name, "arguments": arguments}]});
    let write = |path: &str| call("write_file", json!({"path": path, "text": "sewn\n"}));
    let replies = [
        write("seam.txt"),
        write("cache/new.txt"),
        call("mend", json!({"mission": "Mend the sleeve"})),
        call("place__mark", json!({})),
        json!({"text": "Done."}),
    ];
    stage.write("outer.json", &json!({"reply": replies}).to_string());
    stage.write("inner.json", &json!({"reply": [write("sleeve.txt"), {"text": "Mended."}]}).to_string());
    let server = json!(["sh", stage.write("server.sh", SERVER)]);
    let text = format!(
        r#"
name = "tailor"
model = "scripted:outer.json"
system = "You sew."
mode = "auto"
sandbox = "off"
tools = ["write_file"]

[approval]
default = "auto"

[workspace]
path = "files"
excludes = ["cache/"]
{workspace}

[[mcp]]
name = "place"
command = {server}

[[sub_agent]]
name = "mend"
description = "Mends one part."

[sub_agent.agent]
name = "mender"
model = "scripted:inner.json"
system = "You mend."
tools = ["write_file"]
"#
    );
    stage.write("agent.toml", &text)
}

/// The files of a directory and their contents.
fn picture(directory: &Path) -> BTreeMap<PathBuf, String> {
    let (mut found, mut open) = (BTreeMap::new(), vec![directory.to_owned()]);
    while let Some(next) = open.pop() {
        for entry in std::fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else {
                let name = path.strip_prefix(directory).unwrap().to_owned();
                found.insert(name, std::fs::read_to_string(&path).unwrap());
            }
        }
    }
    found
}

/// Replaces ids and directories in all texts, and removes times and random numbers.
fn normalize(value: &mut Value, places: &[(String, &str)]) {
    match value {
        Value::String(text) => {
            for (place, name) in places {
                *text = text.replace(place, name);
            }
            *text = without_ids(text);
            if is_time(text) {
                *text = "TIME".to_owned();
            }
        }
        Value::Array(values) => values.iter_mut().for_each(|value| normalize(value, places)),
        Value::Object(fields) => {
            fields.retain(|name, _| !name.starts_with("elapsed") && name != "seed");
            fields.values_mut().for_each(|value| normalize(value, places));
        }
        _ => {}
    }
}

fn is_time(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() >= 20 && bytes[4] == b'-' && bytes[10] == b'T' && bytes[13] == b':' && text.ends_with('Z')
}

/// Replaces everything that has the form of a UUID.
fn without_ids(text: &str) -> String {
    let is_id = |text: &str| {
        text.len() == 36
            && text.bytes().enumerate().all(|(place, byte)| match place {
                8 | 13 | 18 | 23 => byte == b'-',
                _ => byte.is_ascii_hexdigit(),
            })
    };
    let (mut without, mut rest) = (String::new(), text);
    while let Some(first) = rest.chars().next() {
        if rest.get(..36).is_some_and(is_id) {
            without.push_str("ID");
            rest = &rest[36..];
        } else {
            without.push(first);
            rest = &rest[first.len_utf8()..];
        }
    }
    without
}

/// Reads what a stage holds after its session.
async fn outcome(stage: &Stage, runtime: &Runtime) -> Outcome {
    let sessions = runtime.store().sessions().await.unwrap();
    let view = runtime.view(sessions[0]).await.unwrap();
    let directory = view.directory().unwrap().to_owned();
    let root = text_of(stage.path("files").canonicalize().unwrap().parent().unwrap());
    let places = [(directory.clone(), "FILES"), (root, "ROOT"), (text_of(&stage.path("")), "ROOT/")];
    let mut records = Vec::new();
    for session in &sessions {
        let read = runtime.records(*session).await.unwrap();
        let mut read: Vec<Value> = read.iter().map(|record| serde_json::to_value(record).unwrap()).collect();
        read.iter_mut().for_each(|record| normalize(record, &places));
        records.push(read);
    }
    let (files, project) = (picture(Path::new(&directory)), picture(&stage.path("files")));
    Outcome { records, files, root: view.files().map(|files| files.root), project }
}

#[tokio::test]
async fn an_agent_file_is_the_same_agent_in_rust_and_in_the_command() {
    for workspace in ["", "isolated = true\nsetup = ['echo made > ready.txt']"] {
        let (there, here) = (Stage::new(), Stage::new());
        let file = agent_file(&there, workspace);
        let ran = there.run(&["run", "Sew", "--agent", &file, "--trust"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let by_command = outcome(&there, &Runtime::at(there.path("store/store.db")).unwrap()).await;

        let mut definition = AgentDefinition::read(agent_file(&here, workspace)).unwrap();
        definition.pin_mcp(&BuildOptions::default()).await.unwrap();
        let agent = definition.build().unwrap().agent;
        let runtime = Runtime::in_memory();
        let run = runtime.start(&agent, "Sew").await.unwrap();
        assert_eq!(run.answer::<String>().await.unwrap(), "Done.");
        let by_program = outcome(&here, &runtime).await;

        assert_eq!(by_program.records.len(), 2, "the session, and that of its sub-agent");
        for (program, command) in by_program.records.iter().zip(&by_command.records) {
            for (program, command) in program.iter().zip(command) {
                assert_eq!(program, command, "{workspace}");
            }
        }
        assert_eq!(by_program, by_command, "{workspace}");
        let names: Vec<_> = by_program.files.keys().map(|path| text_of(path)).collect();
        let sewn = ["cache/new.txt", "cache/old.txt", "coat.txt", "marked.txt", "seam.txt", "sleeve.txt"];
        assert!(sewn.iter().all(|name| names.contains(&(*name).to_owned())), "{names:?}");
        let is_isolated = !workspace.is_empty();
        assert_eq!(names.contains(&"ready.txt".to_owned()), is_isolated, "{names:?}");
        assert_eq!(by_program.project.contains_key(Path::new("seam.txt")), !is_isolated);
    }
}
