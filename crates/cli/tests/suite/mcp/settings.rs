//! MCP servers of the settings and of projects.

use serde_json::{Value, json};

use super::client::AGENT;
use crate::chat;
use crate::pty::Pty;
use crate::stage::{Stage, scripted, text_of};

/// The command of a server that is this program, in `inner/`.
fn inner(stage: &Stage) -> Vec<String> {
    std::fs::create_dir_all(stage.path("inner")).unwrap();
    let agent = stage.write("inner.toml", AGENT);
    let (store, directory) = (text_of(&stage.path("inner-store/store.db")), text_of(&stage.path("inner")));
    let program = env!("CARGO_BIN_EXE_backstitch");
    let command = [program, "--store", &store, "mcp", "serve", "--agent", &agent, "--workspace", &directory];
    command.iter().chain(&["--sandbox", "off"]).map(|word| (*word).to_owned()).collect()
}

fn add(stage: &Stage, name: &str) {
    let command = inner(stage);
    let words: Vec<_> = command.iter().map(String::as_str).collect();
    stage.run(&[&["mcp", "add", name, "--exclude", "fork", "--"], &words[..]].concat()).worked_quietly();
}

fn calling(stage: &Stage, tool: &str) -> String {
    let call = json!({"name": tool, "arguments": {"path": "a.txt", "text": "one\n"}});
    scripted(stage, &json!([{"calls": [call]}, {"text": "Done."}]))
}

#[test]
fn servers_are_added_listed_and_removed() {
    let stage = Stage::new().with_variable("GITHUB_TOKEN", "silk-thread-7");
    std::fs::create_dir_all(stage.path("config/backstitch")).unwrap();
    stage.write("config/backstitch/config.toml", "# mine\nmax_turns = 3 # few\n");
    let none = stage.run(&["mcp", "list"]).worked_quietly();
    assert!(none.contains("there are no MCP servers"), "{none}");
    stage
        .run(&["mcp", "add", "files", "--env", "TOKEN=FILES_TOKEN", "--", "npx", "-y", "files", "."])
        .worked();
    let header = "Authorization: Bearer GITHUB_TOKEN";
    let url = "https://example.com/mcp";
    stage.run(&["mcp", "add", "git", "--url", url, "--header", header, "--timeout", "90s"]).worked_quietly();
    let text = std::fs::read_to_string(stage.path("config/backstitch/config.toml")).unwrap();
    assert!(text.starts_with("# mine\nmax_turns = 3 # few\n"), "{text}");
    assert!(!text.contains("silk-thread-7"), "{text}");
    let listed = stage.run(&["mcp", "list"]).worked_quietly();
    assert!(listed.contains("MCP server files runs: npx -y files ., gets FILES_TOKEN"), "{listed}");
    assert!(listed.contains("MCP server git is at https://example.com/mcp, gets GITHUB_TOKEN"), "{listed}");
    let last: Value = stage.json(&["mcp", "list"]);
    assert_eq!((last["name"].as_str(), last["origin"].as_str()), (Some("git"), Some("user")));

    for (arguments, part) in [
        (&["mcp", "add", "files", "--", "true"][..], "another server has the name `files`"),
        (&["mcp", "add", "a b", "--", "true"], "letters, digits"),
        (&["mcp", "add", "x"], "COMMAND"),
        (&["mcp", "add", "x", "--url", "ftp://a"], "url"),
        (&["mcp", "add", "x", "--url", url, "--header", "X-Key: sk-secret-value"], "environment variable"),
        (&["mcp", "remove", "other"], "no MCP server"),
    ] {
        let errors = stage.run(arguments).called_wrongly();
        assert!(errors.contains(part) && !errors.contains("sk-secret-value"), "{arguments:?}: {errors}");
    }
    stage.run(&["mcp", "remove", "files"]).worked_quietly();
    stage.run(&["mcp", "remove", "git"]).worked_quietly();
    let text = std::fs::read_to_string(stage.path("config/backstitch/config.toml")).unwrap();
    assert_eq!(text, "# mine\nmax_turns = 3 # few\n");
}

#[test]
fn servers_of_the_settings_are_offered_and_a_broken_one_is_only_named() {
    let stage = Stage::new();
    add(&stage, "inner");
    stage.run(&["mcp", "add", "broken", "--", "false"]).worked_quietly();
    stage.run(&["mcp", "add", "missing", "--", "no-such-program-of-mcp"]).worked_quietly();
    let ran = stage.run(&["run", "Sew", "--model", &calling(&stage, "inner__write_file")]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.errors.contains("MCP server broken is left out"), "{}", ran.errors);
    assert!(ran.errors.contains("MCP server missing is left out"), "{}", ran.errors);
    assert_eq!(std::fs::read_to_string(stage.path("inner/a.txt")).unwrap(), "one\n");
    let listed = stage.run(&["mcp", "list", "--check"]).worked_quietly();
    // The check has the default sandbox, in which this server cannot write its store.
    assert!(
        listed.contains("  1 tool: ") && listed.contains("it cannot be used: the MCP server \"broken\""),
        "{listed}"
    );
    // A session keeps what it has.
    stage.run(&["mcp", "remove", "inner"]).worked_quietly();
    let ran = stage.run(&["run", "Sew", "--no-mcp", "--model", &calling(&stage, "inner__write_file")]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(!ran.errors.contains("MCP server"), "{}", ran.errors);
    let shown = stage.run(&["show", "--json"]).worked_quietly();
    assert!(shown.contains("there is no tool"), "{shown}");
}

#[test]
fn servers_of_a_project_need_trust_which_shows_what_they_run() {
    let stage = Stage::new();
    let command = inner(&stage);
    let server = json!({"command": command[0], "args": command[1..], "env": {"COLOR": "blue", "MAX_TOKENS": "7", "HASH": "9f86d081884c7d659a2feaa0c55ad015"}});
    let file = json!({"mcpServers": {"inner": server, "old": {"type": "sse", "url": "https://example.com"}}});
    std::fs::write(stage.path("files/.mcp.json"), file.to_string()).unwrap();
    let model = calling(&stage, "inner__write_file");
    // Nobody can be asked: the session starts without them.
    let ran = stage.run(&["run", "Sew", "--model", &model]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.errors.contains("are not used, because it is not trusted"), "{}", ran.errors);
    assert!(!stage.path("inner/a.txt").exists());
    let listed = stage.run(&["mcp", "list"]);
    assert!(listed.output.contains("(of the project); not trusted"), "{listed:?}");

    let terminal = Pty::start(&stage, &["run", "Sew", "--model", &model], 400, 40);
    terminal.wait_for("MCP server inner runs: ");
    terminal
        .wait_for(", sets COLOR=\"blue\", HASH (not shown, because it may be a secret), MAX_TOKENS=\"7\"");
    terminal.wait_for("Trust them as they are now? [y/N]");
    terminal.send("y\r");
    let (code, text) = terminal.finish();
    assert_eq!(code, Some(0), "{text}");
    assert_eq!(std::fs::read_to_string(stage.path("inner/a.txt")).unwrap(), "one\n");

    // From now on without a question, until the file changes.
    std::fs::remove_file(stage.path("inner/a.txt")).unwrap();
    let ran = stage.run(&["run", "Sew", "--model", &model]);
    assert!(ran.errors.contains("\"old\" is left out") && stage.path("inner/a.txt").exists(), "{ran:?}");
    std::fs::write(stage.path("files/.mcp.json"), file.to_string() + "\n").unwrap();
    let ran = stage.run(&["run", "Sew", "--model", &model]);
    assert!(ran.errors.contains("are not used"), "{ran:?}");
    stage.run(&["trust"]).worked();
    let ran = stage.run(&["run", "Sew", "--model", &model]);
    assert!(!ran.errors.contains("are not used"), "{ran:?}");
    // A broken file stops nothing.
    std::fs::write(stage.path("files/.mcp.json"), "{").unwrap();
    let ran = stage.run(&["run", "Sew", "--model", &model]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.errors.contains(".mcp.json cannot be read"), "{}", ran.errors);
}

#[test]
fn resources_and_prompts_of_a_server_are_used_in_a_conversation() {
    let stage = Stage::new();
    let server = stage.write("library.py", include_str!("library.py"));
    stage.run(&["mcp", "add", "library", "--", "python3", &server]).worked_quietly();
    let answers = json!([{"text": "One."}, {"text": "Two."}, {"text": "Three."}]);
    let model = scripted(&stage, &answers);
    let terminal = Pty::start(&stage, &["chat", "--model", &model], 160, 50);
    chat::enter(&terminal, "How long is it, by @library:book://hem ?", "One.");
    chat::enter(&terminal, "Read @library:book://none", "nothing was sent");
    chat::enter(&terminal, "@alice and @other:x are text", "Two.");
    chat::enter(&terminal, "/library:", "Mends a seam.");
    chat::enter(&terminal, "/library:mend", "needs seam");
    chat::enter(&terminal, "/library:mend the left one", "Three.");
    chat::leave(terminal);
    let log = stage.run(&["log", "--all", "--json"]).worked_quietly();
    assert!(log.contains("The hem is 12 cm long. @/etc/hostname stays text."), "{log}");
    assert!(
        log.contains("<resource-2 server=") || log.contains("resource-2"),
        "the mark is not ended by the text: {log}"
    );
    assert!(log.contains("Mend the seam the left one, and leave @/etc/hostname alone."), "{log}");
    assert!(!log.contains("<file path=\\\"/etc/hostname"), "{log}");
}
