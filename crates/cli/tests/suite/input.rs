//! What is given to an agent besides words: files after an `@`, images, directories and standard input.

use std::io::Write as _;
use std::process::Stdio;

use serde_json::json;

use crate::chat::{ENTER, leave, missions, prompt, say, stage, started};
use crate::command::Ran;
use crate::model::{Model, Said};
use crate::stage::{Stage, as_slices, ended, scripted};

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n rest";

fn put(stage: &Stage, name: &str, content: impl AsRef<[u8]>) {
    let path = stage.path("files").join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, content).unwrap();
}

/// Runs the command with this text on its standard input.
fn piped(stage: &Stage, arguments: &[&str], input: &[u8]) -> Ran {
    let mut child = stage.command(arguments).stdin(Stdio::piped()).spawn().unwrap();
    let mut pipe = child.stdin.take().unwrap();
    // A command that refuses its input does not read all of it.
    let _ = pipe.write_all(input);
    drop(pipe);
    ended(child)
}

#[test]
fn names_that_are_not_files_are_text() {
    let stage = stage();
    put(&stage, "src/pins.txt", "silver\n");
    let terminal = started(&stage, &json!([{"text": "One."}, {"text": "Two."}]), 120);
    say(&terminal, "Why @property, @types/node and @alice?", "One.", 1);
    assert!(!terminal.everything().contains("did you mean"), "{}", terminal.everything());
    say(&terminal, "Read @src/pin.txt and @pins.txt", "Two.", 2);
    let shown = terminal.everything();
    assert_eq!(shown.matches("did you mean `@src/pins.txt`?").count(), 2, "{shown}");
    leave(terminal);
    let missions = missions(&stage);
    assert!(missions[0].contains("Why @property, @types/node and @alice?"), "{missions:?}");
    assert!(!missions[1].contains("silver"), "{missions:?}");
}

#[test]
fn tab_finds_files_by_a_part_of_their_name() {
    let stage = stage();
    put(&stage, "src/deep/button.rs", "horn\n");
    put(&stage, "src/deep/bobbin.rs", "steel\n");
    put(&stage, "target/button.o", "x");
    put(&stage, ".gitignore", "target\n");
    let terminal = started(&stage, &json!([{"text": "One."}, {"text": "Two."}]), 100);
    prompt(&terminal);
    terminal.send("Read @butt\t");
    terminal.wait_for("> Read @src/deep/button.rs");
    terminal.send(ENTER);
    terminal.wait_for("attached: src/deep/button.rs (5 bytes)");
    terminal.wait_for("turn 1");
    prompt(&terminal);
    // Several files: they are listed, and what was typed stays.
    terminal.send("Read @bob");
    terminal.wait_for("> Read @bob");
    terminal.send("\u{15}List @src/deep/b\t");
    terminal.wait_for("src/deep/bobbin.rs  src/deep/button.rs");
    terminal.wait_for_screen("> List @src/deep/b");
    terminal.send("\u{15}List @sr\t");
    terminal.wait_for("> List @src/");
    terminal.send(ENTER);
    terminal.wait_for("attached: src/ (a listing of 3 paths)");
    terminal.wait_for("turn 2");
    prompt(&terminal);
    terminal.send("/perm\t");
    terminal.wait_for("> /permissions");
    terminal.send("\u{15}");
    leave(terminal);
    let missions = missions(&stage);
    assert!(missions[0].contains("horn"), "{missions:?}");
    assert!(missions[1].contains("deep/button.rs"), "{missions:?}");
}

#[test]
fn images_are_sent_by_their_path() {
    let stage = Stage::new().with_variable("OPENAI_API_KEY", "key");
    put(&stage, "pic.png", PNG);
    put(&stage, "note.txt", "text");
    let model = Model::new("openai", [Said::Text("A dot."), Said::Text("The same.")]);
    let ran = stage.run(&as_slices(&Stage::asking("openai", &model, &["--image", "pic.png"])));
    assert!(ran.errors.contains("attached: pic.png (image/png, 13 bytes)"), "{}", ran.errors);
    ran.worked_quietly();
    let session = stage.session();
    stage.run(&["ask", &session, "And this?", "--image", "pic.png"]).worked_quietly();
    let asked = model.asked();
    assert!(asked[0].body.contains("data:image/png;base64,"), "{}", asked[0].body);
    assert_eq!(asked[1].body.matches("data:image/png;base64,").count(), 2, "{}", asked[1].body);
    for (name, reason) in
        [("note.txt", "it is not an image"), ("none.png", "No such file"), (".", "not an image")]
    {
        let errors = stage.run(&["run", "See", "--model", "openai:m", "--image", name]).called_wrongly();
        assert!(errors.contains(reason) && errors.contains("code: usage"), "{errors}");
    }
    put(&stage, "engine.toml", "engine = \"claude-code\"\n");
    let refused = stage.run(&["run", "See", "--agent", "engine.toml", "--trust", "--image", "pic.png"]);
    assert!(
        refused.errors.contains("images and documents cannot be sent to claude-code"),
        "{}",
        refused.errors
    );
    assert!(refused.errors.contains("code: unsupported_media"), "{}", refused.errors);
    assert_eq!(model.asked().len(), 2);
}

#[test]
fn standard_input_is_attached_to_a_mission() {
    let stage = stage();
    let model = scripted(&stage, &json!([{"text": "A seam."}, {"text": "A hem."}, {"text": "A dot."}]));
    let run = piped(&stage, &["run", "Explain", "--model", &model], b"line 1\n</standard_input>\n");
    assert!(run.errors.contains("attached: standard input (25 bytes)"), "{}", run.errors);
    let session = stage.session();
    piped(&stage, &["ask", &session, "And this?"], b"line 2").worked_quietly();
    piped(&stage, &["ask", &session, "And this?"], PNG).worked_quietly();
    let missions = missions(&stage);
    assert!(
        missions[0].contains(r"<standard_input-2>\nline 1\n</standard_input>\n</standard_input-2>"),
        "{missions:?}"
    );
    assert!(missions[1].contains(r"<standard_input>\nline 2\n</standard_input>"), "{missions:?}");
    assert!(missions[2].contains("image/png"), "{missions:?}");

    for (input, reason) in [
        (vec![0_u8, 159, 146, 150], "standard input cannot be attached: it is not UTF-8 text"),
        (vec![b'x'; 1024 * 1024 + 1], "it is larger than 1 MiB; write it to a file"),
    ] {
        let refused = piped(&stage, &["run", "Explain", "--model", &model], &input);
        assert!(refused.code == Some(2) && refused.errors.contains(reason), "{}", refused.errors);
    }
    let empty = piped(&stage, &["run", "Explain", "--model", &model], b"");
    assert_eq!(empty.code, Some(0), "{}", empty.errors);
    let empty = piped(&stage, &["run", "Explain", "--model", &model, "--stdin"], b"");
    assert_eq!(empty.code, Some(2), "{}", empty.errors);
    let both = piped(&stage, &["run", "-", "--model", &model, "--stdin"], b"Explain");
    assert_eq!(both.code, Some(2), "{}", both.errors);
}

#[test]
fn a_pipe_that_nobody_writes_does_not_hold_a_mission() {
    let stage = stage();
    let model = scripted(&stage, &json!([{"text": "A seam."}]));
    let mut child =
        stage.command(&["run", "Explain", "--model", &model]).stdin(Stdio::piped()).spawn().unwrap();
    let open = child.stdin.take();
    let run = ended(child);
    assert_eq!(run.code, Some(0), "{}", run.errors);
    assert!(run.errors.contains("nothing arrived on standard input"), "{}", run.errors);
    drop(open);
    assert!(!missions(&stage)[0].contains("standard_input"));
}
