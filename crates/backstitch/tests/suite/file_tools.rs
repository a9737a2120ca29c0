//! The tools for files, through the real runner, on files in memory and on a real directory.

use backstitch::Tools;
use backstitch::host::CallOutcome;
use backstitch::journal::Effect;
use backstitch::message::Part;
use backstitch::tool::WorkspaceUse;
use backstitch::tools::{builtin_tools, file_tools};
use serde_json::{Value, json};

use crate::place::Place;

const SEAM: &str = "fn row() {}\nfn knot() {\n    row();\n}\n";

fn files() -> Vec<(&'static str, &'static str)> {
    vec![
        ("src/seam.rs", SEAM),
        ("src/deep/er.txt", "Row\n"),
        ("notes.md", "# Notes\r\nrow\r\n"),
        ("empty", ""),
    ]
}

/// A tool is offered alone or with others, so no text may send a model to another one.
#[test]
fn no_description_names_another_tool() {
    let mut tools = builtin_tools();
    tools.extend(backstitch::tools::plan_tools());
    tools.push(backstitch::tools::recall());
    let tools = Tools::new(tools).unwrap();
    let names: Vec<String> = tools.iter().map(|tool| tool.name().to_string()).collect();
    for tool in tools.iter() {
        let mut texts = vec![tool.spec.description.clone()];
        let properties = tool.spec.parameters["properties"].as_object().into_iter().flatten();
        texts.extend(properties.map(|(_, property)| property["description"].to_string()));
        for name in names.iter().filter(|name| **name != tool.name().to_string()) {
            let is_named = |text: &String| {
                let words = text.split(|character: char| !character.is_alphanumeric() && character != '_');
                // A name of one word may be that word; an advice to use it is not.
                let has_word = words.clone().any(|word| word == name);
                has_word && (name.contains('_') || text.to_lowercase().contains(&format!("use {name}")))
            };
            assert!(!texts.iter().any(is_named), "{} names {name}: {texts:?}", tool.name());
        }
    }
}

#[test]
fn effects_are_declared() {
    let tools = Tools::new(builtin_tools()).unwrap();
    for name in ["read_file", "list_files", "glob", "grep", "stat"] {
        let spec = &tools.get(name).unwrap().spec;
        assert_eq!((spec.effect, spec.workspace), (Effect::Pure, WorkspaceUse::Read), "{name}");
        assert!(spec.output.is_some(), "{name}");
    }
    for name in ["write_file", "edit_file", "delete_file", "make_directory", "rename"] {
        let spec = &tools.get(name).unwrap().spec;
        assert_eq!((spec.effect, spec.workspace), (Effect::Workspace, WorkspaceUse::Write), "{name}");
    }
    let shell = &tools.get("shell").unwrap().spec;
    // Its sandbox keeps all effects in the workspace, if the system enforces it.
    let is_enforced = backstitch::host::probe().enforces(&backstitch::tools::Shell::default().sandbox);
    let effect = if is_enforced { Effect::Workspace } else { Effect::External };
    assert_eq!((shell.effect, shell.workspace), (effect, WorkspaceUse::Write));
    assert_eq!(tools.iter().count(), 11);
    for tool in tools.iter() {
        let described = |property: &Value| property["description"].is_string();
        let properties = tool.spec.parameters["properties"].as_object().unwrap();
        assert!(properties.values().all(described), "{}: {properties:?}", tool.name());
        for example in &tool.spec.examples {
            assert!(example.arguments.keys().all(|name| properties.contains_key(name)), "{}", tool.name());
        }
    }
}

#[tokio::test]
async fn files_are_read_in_windows() {
    for place in Place::both(&files()) {
        let harness = place.harness(file_tools()).await;
        assert_eq!(
            harness.succeeds("read_file", json!({"path": "src/seam.rs"})).await,
            json!({"text": SEAM, "first_line": 1, "last_line": 4, "total_lines": 4})
        );
        assert_eq!(
            harness
                .succeeds("read_file", json!({"path": "./src//seam.rs", "from_line": 2, "lines": 2}))
                .await,
            json!({
                "text": "fn knot() {\n    row();\n", "first_line": 2, "last_line": 3, "total_lines": 4,
                "note": "the file has more lines: read on from_line 4"
            })
        );
        let beyond = harness.succeeds("read_file", json!({"path": "src/seam.rs", "from_line": 9})).await;
        assert_eq!((&beyond["text"], &beyond["note"]), (&json!(""), &json!("the file ends at line 4")));
        let empty = harness.succeeds("read_file", json!({"path": "empty"})).await;
        assert_eq!(empty, json!({"text": "", "first_line": 1, "last_line": 1, "total_lines": 0}));
    }
}

#[tokio::test]
async fn long_files_are_read_in_parts_that_join_to_the_whole() {
    let long: String = (0..9_000).map(|number| format!("{number} äöü and some more text\n")).collect();
    let wide = format!("short\n{}\nlast\n", "ä".repeat(40_000));
    for place in Place::both(&[("long.txt", &long), ("wide.txt", &wide)]) {
        let harness = place.harness(file_tools()).await;
        let (mut text, mut from) = (String::new(), 1);
        while text.len() < long.len() {
            let part = harness
                .succeeds("read_file", json!({"path": "long.txt", "from_line": from, "lines": 1_000_000}))
                .await;
            let given = part["text"].as_str().unwrap();
            assert!(!given.is_empty() && given.len() <= 48 * 1024);
            assert_eq!(part["first_line"], from);
            text.push_str(given);
            from = part["last_line"].as_u64().unwrap() + 1;
        }
        assert_eq!(text, long);

        let first = harness.succeeds("read_file", json!({"path": "wide.txt"})).await;
        assert_eq!((&first["text"], &first["last_line"]), (&json!("short\n"), &json!(1)));
        let second = harness.succeeds("read_file", json!({"path": "wide.txt", "from_line": 2})).await;
        assert_eq!(second["text"].as_str().unwrap().len(), 48 * 1024);
        let note = second["note"].as_str().unwrap();
        assert!(note.contains("line 2 has 80000 bytes") && note.contains("from_line 3"), "{note}");
        let third = harness.succeeds("read_file", json!({"path": "wide.txt", "from_line": 3})).await;
        assert_eq!((&third["text"], third.get("note")), (&json!("last\n"), None));
    }
}

/// Files of media: name, first bytes, and type. Names and types have nothing to do with each other.
const MEDIA: [(&str, &[u8], &str); 5] = [
    ("drawing.txt", b"\x89PNG\r\n\x1a\n\0rest", "image/png"),
    ("photo", b"\xff\xd8\xff\xe0rest", "image/jpeg"),
    ("film.mp4", b"GIF89a\xff\0rest", "image/gif"),
    ("src/a.rs", b"RIFF\xff\0\0\0WEBPrest", "image/webp"),
    ("book.md", b"%PDF-1.7\n\xe2\xe3rest", "application/pdf"),
];

#[tokio::test]
async fn images_and_documents_are_shown_by_their_bytes() {
    for place in Place::both(&[("text.png", "only the name is that of an image\n")]) {
        for (name, bytes, _) in MEDIA {
            place.write_bytes(name, bytes);
        }
        let harness = place.harness(file_tools()).await;
        for (name, bytes, kind) in MEDIA {
            let CallOutcome::Succeeded(message) = harness.run("read_file", json!({"path": name})).await
            else {
                panic!("{name} was not read")
            };
            let result = message.message.option_result().unwrap();
            assert_eq!(result.result.inline(), Some(&json!({"media": kind, "bytes": bytes.len()})), "{name}");
            let [Part::Media(media)] = &result.parts[..] else { panic!("{name}: {:?}", result.parts) };
            assert_eq!((media.mime.as_deref(), media.prompt_hint.as_deref()), (Some(kind), Some(name)));
            let object = harness.live.object(media.url.object_id().unwrap()).await.unwrap().unwrap();
            assert_eq!(&**object.bytes(), bytes, "{name}: the bytes are stored with the result");
            // What a program gets is declared.
            harness.succeeds("read_file", json!({"path": name})).await;
        }
        let text = harness.succeeds("read_file", json!({"path": "text.png"})).await;
        assert_eq!(text["text"], "only the name is that of an image\n");
    }
}

#[tokio::test]
async fn media_has_a_largest_size_and_other_bytes_are_refused() {
    const MOST: usize = 3_932_160;
    for place in [Place::in_memory(), Place::on_disk()] {
        let sized = |beginning: &[u8], size: usize| {
            let mut bytes = beginning.to_vec();
            bytes.resize(size, 0xff);
            bytes
        };
        place.write_bytes("fits.png", &sized(MEDIA[0].1, MOST));
        place.write_bytes("large.png", &sized(MEDIA[0].1, MOST + 1));
        place.write_bytes("large.pdf", &sized(MEDIA[4].1, MOST + 1));
        place.write_bytes("song.mp3", b"ID3\x04\xff\xfe");
        place.write_bytes("photo.png", b"\0\0\0\x18ftypheic\xff");
        let harness = place.harness(file_tools()).await;
        harness.succeeds("read_file", json!({"path": "fits.png"})).await;
        for (path, kind, advice) in [
            ("large.png", "too_large", "make a smaller copy"),
            ("large.pdf", "too_large", "the pages that you need"),
            ("song.mp3", "not_text", "nor an image (PNG, JPEG, GIF, WebP)"),
            ("photo.png", "not_text", "nor an image (PNG, JPEG, GIF, WebP)"),
        ] {
            let (found, text) = harness.fails("read_file", json!({"path": path})).await;
            assert_eq!(found, kind, "{path}: {text}");
            assert!(text.contains(advice) && text.contains(path), "{path}: {text}");
        }
    }
}

#[tokio::test]
async fn files_and_lines_are_found() {
    for place in Place::both(&files()) {
        let harness = place.harness(file_tools()).await;
        assert_eq!(
            harness.succeeds("list_files", json!({})).await,
            json!({"path": ".", "entries": [
                {"name": "empty", "kind": "file", "bytes": 0},
                {"name": "notes.md", "kind": "file", "bytes": 14},
                {"name": "src", "kind": "directory"},
            ]})
        );
        let listed = harness.succeeds("list_files", json!({"path": "src/deep"})).await;
        assert_eq!(listed["entries"], json!([{"name": "er.txt", "kind": "file", "bytes": 4}]));
        assert_eq!(
            harness.succeeds("glob", json!({"pattern": "**/*e*"})).await,
            json!({"paths": ["empty", "notes.md", "src/deep/", "src/deep/er.txt", "src/seam.rs"]})
        );
        let limited = harness.succeeds("glob", json!({"pattern": "**", "path": "src", "limit": 1})).await;
        assert_eq!(limited["paths"], json!(["src/deep/"]));
        assert!(limited["note"].as_str().unwrap().contains("raise the limit"));
        assert_eq!(
            harness.succeeds("grep", json!({"pattern": "^row$"})).await,
            json!({"matches": [{"path": "notes.md", "line": 2, "text": "row"}], "searched": 4})
        );
        let found = harness
            .succeeds("grep", json!({"pattern": "ROW", "ignore_case": true, "glob": "*.rs", "path": "src", "context_lines": 1, "limit": 1}))
            .await;
        let expected =
            json!([{"path": "src/seam.rs", "line": 1, "text": "fn row() {}", "after": ["fn knot() {"]}]);
        assert_eq!(found["matches"], expected);
        assert!(found["note"].as_str().unwrap().contains("there may be more"));
        let stat = harness.succeeds("stat", json!({"path": "notes.md"})).await;
        assert_eq!(
            (&stat["kind"], &stat["bytes"], &stat["executable"]),
            (&json!("file"), &json!(14), &json!(false))
        );
        let stat = harness.succeeds("stat", json!({"path": "src/"})).await;
        assert_eq!(
            (&stat["path"], &stat["kind"], stat.get("bytes")),
            (&json!("src"), &json!("directory"), None)
        );
    }
}

#[tokio::test]
async fn many_matches_are_truncated_with_a_note() {
    let line = "needle ".repeat(100);
    let many: String = (0..400).map(|_| format!("{line}\n")).collect();
    for place in Place::both(&[("many.txt", &many)]) {
        place.write_bytes("binary", b"needle\0");
        let harness = place.harness(file_tools()).await;
        let found = harness.succeeds("grep", json!({"pattern": "needle", "limit": 1_000})).await;
        assert!(found.to_string().len() < 64 * 1024);
        let note = found["note"].as_str().unwrap();
        assert!(note.contains("more matches are not shown") && note.contains("skipped"), "{note}");
    }
}

#[tokio::test]
async fn files_are_written_and_edited() {
    for place in Place::both(&files()) {
        let harness = place.harness(file_tools()).await;
        let text = harness.succeeds("write_file", json!({"path": "new/a.txt", "text": "one\ntwo\n"})).await;
        assert_eq!(text, "created new/a.txt: 8 bytes, 2 lines");
        let more = json!({"path": "new/a.txt", "text": "three\n", "mode": "append"});
        assert_eq!(harness.succeeds("write_file", more).await, "appended to new/a.txt: 6 bytes, 1 line");
        assert_eq!(place.read("new/a.txt").unwrap(), "one\ntwo\nthree\n");
        let text = harness.succeeds("write_file", json!({"path": "new/a.txt", "text": "one one one"})).await;
        assert_eq!(text, "overwrote new/a.txt: 11 bytes, 1 line");

        let text = harness
            .succeeds("edit_file", json!({"path": "src/seam.rs", "old": "fn row()", "new": "fn line()"}))
            .await;
        assert_eq!(text, "src/seam.rs: replaced 1 place, the first at line 1");
        let text = harness
            .succeeds("edit_file", json!({"path": "new/a.txt", "old": "one", "new": "1", "count": 3}))
            .await;
        assert_eq!(text, "new/a.txt: replaced 3 places, the first at line 1");
        harness.succeeds("edit_file", json!({"path": "new/a.txt", "old": "1", "new": "", "all": true})).await;
        assert_eq!(place.read("new/a.txt").unwrap(), "  ");
    }
}

#[tokio::test]
async fn files_are_arranged() {
    for place in Place::both(&files()) {
        let harness = place.harness(file_tools()).await;
        assert_eq!(harness.succeeds("make_directory", json!({"path": "a/b/c"})).await, "made a/b/c/");
        let moved = json!({"from": "src/deep", "to": "other/place"});
        assert_eq!(harness.succeeds("rename", moved).await, "moved src/deep to other/place");
        assert_eq!(place.read("other/place/er.txt").unwrap(), "Row\n");
        harness.succeeds("delete_file", json!({"path": "notes.md"})).await;
        harness.succeeds("delete_file", json!({"path": "a", "recursive": true})).await;
        let left = harness.succeeds("glob", json!({"pattern": "**"})).await;
        assert_eq!(
            left["paths"],
            json!(["empty", "other/", "other/place/", "other/place/er.txt", "src/", "src/seam.rs"])
        );
    }
}

/// Each call fails with advice, and leaves the files unchanged.
#[tokio::test]
async fn failed_calls_give_advice_and_change_nothing() {
    let rows: &[(&str, Value, &str, &[&str])] = &[
        (
            "read_file",
            json!({"path": "src/sea.rs"}),
            "not_found",
            &["the directory src holds deep/, seam.rs"],
        ),
        (
            "read_file",
            json!({"path": "no/such/file"}),
            "not_found",
            &["directory . holds", "notes.md", "src/"],
        ),
        ("read_file", json!({"path": "src"}), "is_directory", &["list the directory"]),
        ("read_file", json!({"path": "binary"}), "not_text", &["stat"]),
        ("read_file", json!({"path": "/etc/passwd"}), "invalid_path", &["relative to the workspace"]),
        ("read_file", json!({"path": "../x"}), "invalid_path", &["`..`"]),
        (
            "read_file",
            json!({"path": "notes.md", "from_line": 0}),
            "invalid_arguments",
            &["/from_line", "got 0"],
        ),
        ("list_files", json!({"path": "notes.md"}), "not_directory", &["use the path of a directory"]),
        ("glob", json!({"pattern": "["}), "invalid_pattern", &["["]),
        ("grep", json!({"pattern": "("}), "invalid_pattern", &["("]),
        ("stat", json!({"path": "nothing"}), "not_found", &["holds"]),
        (
            "write_file",
            json!({"path": "notes.md", "text": "", "mode": "create"}),
            "exists",
            &["choose another path"],
        ),
        ("write_file", json!({"path": "src", "text": ""}), "is_directory", &["file"]),
        ("write_file", json!({"path": "notes.md/x", "text": ""}), "not_directory", &[]),
        (
            "write_file",
            json!({"path": "x", "text": "", "mode": "replace"}),
            "invalid_arguments",
            &["/mode", "\"replace\""],
        ),
        (
            "edit_file",
            json!({"path": "src/seam.rs", "old": "fn knto() {", "new": "x"}),
            "edit_does_not_fit",
            &["line most like it is 2", "fn knot() {"],
        ),
        (
            "edit_file",
            json!({"path": "src/seam.rs", "old": "row()", "new": "x"}),
            "edit_does_not_fit",
            &["2 times (line 1, 3)", "or replace all"],
        ),
        (
            "edit_file",
            json!({"path": "src/seam.rs", "old": "row()", "new": "x", "count": 3}),
            "edit_does_not_fit",
            &["2 times, not 3"],
        ),
        (
            "edit_file",
            json!({"path": "src/seam.rs", "old": "  row();\n  }", "new": "x"}),
            "edit_does_not_fit",
            &["spaces"],
        ),
        (
            "edit_file",
            json!({"path": "notes.md", "old": "# Notes\nrow", "new": "x"}),
            "edit_does_not_fit",
            &["\\r\\n"],
        ),
        ("edit_file", json!({"path": "notes.md", "old": "", "new": "x"}), "edit_does_not_fit", &["write it"]),
        ("delete_file", json!({"path": "src"}), "not_empty", &["all that it holds"]),
        ("delete_file", json!({"path": "."}), "invalid_path", &["itself"]),
        ("delete_file", json!({"path": "nothing"}), "not_found", &["holds"]),
        ("make_directory", json!({"path": "notes.md"}), "exists", &[]),
        ("rename", json!({"from": "notes.md", "to": "empty"}), "exists", &["delete the existing one"]),
        ("rename", json!({"from": "nothing", "to": "made/on/the/way"}), "not_found", &["holds"]),
        ("rename", json!({"from": "src", "to": "src/deep/src"}), "", &[]),
    ];
    for place in Place::both(&files()) {
        place.write_bytes("binary", b"\xff\xfe");
        let harness = place.harness(file_tools()).await;
        let before = place.root();
        for (tool, arguments, kind, words) in rows {
            let (found, text) = harness.fails(tool, arguments.clone()).await;
            assert!(kind.is_empty() || found == *kind, "{tool} {arguments}: {found}: {text}");
            assert!(words.iter().all(|word| text.contains(word)), "{tool} {arguments}: {text}");
            assert_eq!(place.root(), before, "{tool} {arguments}");
        }
    }
}

#[tokio::test]
async fn without_a_workspace_there_are_no_files() {
    let harness = crate::harness::Harness::new(file_tools()).await;
    let (_, text) = harness.fails("read_file", json!({"path": "a"})).await;
    assert!(text.contains("the session has no workspace"), "{text}");
    assert!(matches!(
        harness.run("write_file", json!({"path": "a", "text": ""})).await,
        CallOutcome::Failed(_)
    ));
}

/// A model sees a placeholder instead of a key in a file, and must not write the placeholder to the file.
#[tokio::test]
async fn the_placeholder_of_a_key_is_not_written() {
    use backstitch::host::ToolRunner;
    use backstitch::secrets::Secrets;
    const KEY: &str = "sk-test-0123456789";
    for place in Place::both(&[("settings", &format!("name = a\nkey = {KEY}\n"))]) {
        let mut harness = place.harness(vec![]).await;
        let runner = ToolRunner::new(harness.live.clone(), Tools::new(file_tools()).unwrap());
        harness.runner = std::sync::Arc::new(runner.with_secrets(Secrets::new([KEY])));
        let shown = harness.succeeds("read_file", json!({"path": "settings"})).await.to_string();
        assert!(shown.contains("[secret]") && !shown.contains(KEY), "{shown}");
        let found = harness.succeeds("grep", json!({"pattern": "key"})).await.to_string();
        assert!(found.contains("[secret]") && !found.contains(KEY), "{found}");
        for (tool, arguments) in [
            ("write_file", json!({"path": "settings", "text": "name = b\nkey = [secret]\n"})),
            ("write_file", json!({"path": "copy", "text": "[secret]", "mode": "append"})),
            ("edit_file", json!({"path": "settings", "old": "name = a", "new": "key = [secret]"})),
        ] {
            let (kind, text) = harness.fails(tool, arguments).await;
            assert_eq!(kind, "redacted", "{text}");
        }
        harness
            .succeeds("edit_file", json!({"path": "settings", "old": "name = a", "new": "name = b"}))
            .await;
        assert_eq!(place.read("settings").unwrap(), format!("name = b\nkey = {KEY}\n"));
        assert_eq!(place.read("copy"), None);
    }
    // Without keys the placeholder is ordinary text.
    let place = Place::in_memory();
    let harness = place.harness(file_tools()).await;
    harness.succeeds("write_file", json!({"path": "a", "text": "[secret]"})).await;
}
