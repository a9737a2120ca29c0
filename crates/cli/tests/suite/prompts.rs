//! Commands and skills in Markdown files.

use serde_json::{Value, json};

use crate::chat::{enter, leave, missions, say, stage, started};
use crate::model::{Model, Said};
use crate::stage::{Stage, as_slices, scripted};

fn put(stage: &Stage, name: &str, text: &str) {
    let path = stage.path(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn replies(count: usize) -> Value {
    (0..count).map(|number| json!({"text": format!("Answer {number}.")})).collect()
}

/// Returns the states of all commands and skills, by their names.
fn states(stage: &Stage) -> Vec<(String, String)> {
    let listed = stage.run(&["commands", "--json"]).worked();
    let lines = listed.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    lines.map(|line| (text(&line["name"]), text(&line["state"]))).collect()
}

fn state_of(stage: &Stage, name: &str) -> String {
    let states = states(stage);
    states.iter().find(|(known, _)| known == name).unwrap_or_else(|| panic!("{name}: {states:?}")).1.clone()
}

#[test]
fn commands_of_the_user_are_messages_with_arguments() {
    let stage = stage();
    put(
        &stage,
        "config/backstitch/commands/mend.md",
        "---\ndescription: Mend a cloth\nargument-hint: [cloth]\nallowed-tools: Bash(rm:*)\nmodel: other\n---\n\
         Mend the $1 with $2, as $ARGUMENTS says. See @pins.txt. Status: !`touch ran`\n",
    );
    put(&stage, "claude/commands/front/review.md", "Review this.\n");
    put(&stage, "codex/prompts/draft.md", "Draft $FILE.\n");
    put(&stage, "files/pins.txt", "silver\n");
    let terminal = started(&stage, &replies(4), 120);
    enter(&terminal, "/help", "/mend [cloth]");
    say(&terminal, "/mend coat 'red thread'", "Answer 0.", 1);
    let shown = terminal.everything();
    assert!(shown.contains("`allowed-tools` and `model` of /mend is not followed"), "{shown}");
    assert!(shown.contains("the commands in /mend (!`…`) are not run"), "{shown}");
    say(&terminal, "/front:review the sleeve", "Answer 1.", 2);
    say(&terminal, "/draft FILE=hem.md", "Answer 2.", 3);
    enter(&terminal, "/mned", "did you mean `/mend`");
    terminal.send("/men\t");
    terminal.wait_for("> /mend");
    terminal.send("\u{15}");
    leave(terminal);
    let missions = missions(&stage);
    assert!(
        missions[0].contains("Mend the coat with red thread, as coat 'red thread' says."),
        "{missions:?}"
    );
    assert!(missions[0].contains("silver") && missions[0].contains("!`touch ran`"), "{missions:?}");
    assert!(missions[1].contains(r"Review this.\n\nArguments: the sleeve"), "{missions:?}");
    assert!(missions[2].contains("Draft hem.md."), "{missions:?}");
    assert_eq!(stage.file("ran"), None);
    assert_eq!(missions.len(), 3);
}

#[test]
fn commands_of_a_project_are_offered_once_they_are_trusted() {
    let stage = stage();
    put(&stage, "secret", "the key");
    put(&stage, "files/.claude/commands/fix.md", "Fix it. @../secret @note.txt\n");
    put(&stage, "files/.backstitch/commands/mend.md", "Mend it.\n");
    put(&stage, "config/backstitch/commands/mend.md", "My own mending.\n");
    put(&stage, "files/note.txt", "a note");
    std::os::unix::fs::symlink("../../../secret", stage.path("files/.claude/commands/out.md")).unwrap();
    assert_eq!(state_of(&stage, "fix"), "not_trusted");
    let terminal = started(&stage, &replies(2), 120);
    terminal.wait_for("commands and skills of this project that are not trusted: /mend, /fix");
    enter(&terminal, "/fix", "/fix is not trusted: read ");
    enter(&terminal, "/out", "it leads out of the project");
    stage.run(&["trust"]).worked();
    say(&terminal, "/fix", "Answer 0.", 1);
    say(&terminal, "/mend", "Answer 1.", 2);
    leave(terminal);
    let missions = missions(&stage);
    assert!(missions[0].contains("a note") && !missions[0].contains("the key"), "{missions:?}");
    assert!(missions[1].contains("My own mending."), "a project replaces nothing of the user: {missions:?}");
    let all = states(&stage);
    let of = |name: &str| {
        let found = all.iter().filter(|(known, _)| known == name);
        found.map(|(_, state)| state.as_str()).collect::<Vec<_>>()
    };
    assert_eq!(
        (of("fix"), of("mend"), of("out")),
        (vec!["offered"], vec!["offered", "shadowed"], vec!["wrong"])
    );
    put(&stage, "files/.claude/commands/fix.md", "Remove everything.\n");
    assert_eq!(state_of(&stage, "fix"), "not_trusted");
    let file = stage.path("files/.claude/commands/fix.md");
    stage.run(&["trust", file.to_str().unwrap()]).worked();
    assert_eq!(state_of(&stage, "fix"), "offered");
    let table = stage.run(&["commands"]).worked();
    assert!(table.contains("shadowed") && table.contains(".claude/commands/fix.md"), "{table}");
    stage.run(&["trust", "--revoke"]).worked();
    assert_eq!(state_of(&stage, "fix"), "not_trusted");
}

#[test]
fn files_that_cannot_be_read_say_why() {
    let stage = stage();
    put(&stage, "config/backstitch/commands/open.md", "---\ndescription: x\n");
    put(&stage, "config/backstitch/commands/large.md", &"x".repeat(64 * 1024 + 1));
    put(&stage, "config/backstitch/commands/empty.md", "---\ndescription: x\n---\n\n");
    put(&stage, "config/backstitch/commands/two words.md", "x");
    put(&stage, "config/backstitch/skills/bare/SKILL.md", "No front matter.");
    std::fs::write(stage.path("config/backstitch/commands/noise.md"), [0xff, 0xfe]).unwrap();
    let listed = stage.run(&["commands", "--json"]).worked();
    let reason = |name: &str| {
        let lines = listed.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let line = lines.into_iter().find(|line| line["name"] == name).unwrap_or_else(|| panic!("{listed}"));
        assert_eq!(line["state"], "wrong");
        line["reason"].as_str().unwrap().to_owned()
    };
    assert!(reason("open").contains("that ends the front matter is missing"));
    assert!(reason("large").contains("64 KiB"));
    assert!(reason("empty").contains("empty"));
    assert!(reason("two?words").contains("characters"));
    assert!(reason("bare").contains("no `description`"));
    assert!(reason("noise").contains("not UTF-8"));
    let none = stage.run(&["commands", "--offered"]).worked();
    assert!(none.contains("there are no commands and skills"), "{none}");
}

#[test]
fn a_model_loads_skills() {
    let stage = stage();
    put(
        &stage,
        "config/backstitch/skills/hem/SKILL.md",
        "---\nname: hem\ndescription: How to hem a cloth\n---\nFold twice. See table.md.\n",
    );
    put(&stage, "config/backstitch/skills/hem/table.md", "1 cm\n");
    put(&stage, "files/.claude/skills/cut/SKILL.md", "---\ndescription: How to cut\n---\nCut once.\n");
    put(&stage, "files/.claude/skills/cut/sizes.md", "40 cm\n");
    let load = |arguments: Value| json!([{"name": "load_skill", "arguments": arguments}]);
    let script = json!([
        {"calls": load(json!({"name": "hem"}))},
        {"calls": load(json!({"name": "hem", "file": "table.md"}))},
        {"calls": load(json!({"name": "hem", "file": "../../config.toml"}))},
        {"calls": load(json!({"name": "cut"}))},
        {"text": "Done."},
    ]);
    let model = scripted(&stage, &script);
    let run = stage.run(&["run", "Hem it", "--model", &model]);
    assert!(run.errors.contains("skills: hem\n"), "{}", run.errors);
    let log = stage.run(&["log", "--all", "--json"]).worked();
    let system: Value = serde_json::from_str(log.lines().next().unwrap()).unwrap();
    let system = system["data"]["agent"]["system"].as_str().unwrap().to_owned();
    assert!(system.contains("# Skills") && system.contains("- hem: How to hem a cloth"), "{system}");
    assert!(!system.contains("How to cut") && !system.contains("Fold twice"), "{system}");
    assert!(log.contains("Fold twice.") && log.contains("1 cm"), "{log}");
    assert!(log.contains("`file` is a path below"), "{log}");
    assert!(log.contains("there is no skill of this name; there are hem"), "{log}");
    // Once it is trusted, that of the project is offered; a changed one is not read.
    stage.run(&["trust"]).worked();
    put(&stage, "files/.claude/skills/cut/later.md", "With shears.\n");
    let script = json!([
        {"calls": load(json!({"name": "cut"}))},
        {"calls": load(json!({"name": "cut", "file": "sizes.md"}))},
        {"calls": load(json!({"name": "cut", "file": "later.md"}))},
        {"text": "Done."},
        {"calls": load(json!({"name": "cut"}))},
        {"text": "Done."},
    ]);
    let run = stage.run(&["run", "Cut it", "--model", &scripted(&stage, &script)]);
    assert!(run.errors.contains("skills: hem, cut\n"), "{}", run.errors);
    let session = stage.session();
    let log = stage.run(&["log", &session, "--all", "--json"]).worked();
    assert!(log.contains("Cut once.") && log.contains("40 cm"), "{log}");
    assert!(!log.contains("With shears.") && log.contains("the file is not trusted"), "{log}");
    put(&stage, "files/.claude/skills/cut/SKILL.md", "---\ndescription: How to cut\n---\nCut twice.\n");
    stage.run(&["ask", &session, "Again"]).worked_quietly();
    let log = stage.run(&["log", &session, "--all", "--json"]).worked();
    assert!(!log.contains("Cut twice.") && log.contains("it is not trusted as it is now"), "{log}");
}

#[test]
fn a_request_with_skills_can_be_rendered_again() {
    let stage = stage().with_variable("OPENAI_API_KEY", "key");
    put(&stage, "claude/skills/hem/SKILL.md", "---\ndescription: How to hem\n---\nFold.\n");
    let model = Model::new("openai", [Said::Text("Done.")]);
    stage.run(&as_slices(&Stage::asking("openai", &model, &[]))).worked_quietly();
    assert!(model.asked()[0].body.contains("load_skill"), "{}", model.asked()[0].body);
    let request = stage.json(&["request", &stage.session()]);
    assert_eq!(request["agrees"], true, "{request}");
    let model = Model::new("openai", [Said::Text("Done.")]);
    stage.run(&as_slices(&Stage::asking("openai", &model, &["--tools", "read_file"]))).worked_quietly();
    assert!(!model.asked()[0].body.contains("load_skill"), "nobody asked for this tool");
}

#[test]
fn a_person_sends_a_skill() {
    let stage = stage();
    put(
        &stage,
        "claude/skills/hem/SKILL.md",
        "---\ndescription: How to hem\ndisable-model-invocation: true\n---\nFold twice.\n",
    );
    let terminal = started(&stage, &replies(2), 100);
    assert!(!terminal.everything().contains("skills: hem"), "{}", terminal.everything());
    enter(&terminal, "/skill", "How to hem");
    enter(&terminal, "/skill cut", "there is no skill cut");
    say(&terminal, "/skill hem", "Answer 0.", 1);
    say(&terminal, "/skill hem the left sleeve", "Answer 1.", 2);
    leave(terminal);
    let missions = missions(&stage);
    assert!(
        missions[0].contains("Use the skill `hem`.") && missions[0].contains("Fold twice."),
        "{missions:?}"
    );
    assert!(missions[1].contains("the left sleeve") && missions[1].contains("<skill name="), "{missions:?}");
}

#[test]
fn a_conversation_shows_how_it_stands() {
    let stage = stage();
    put(&stage, "config/backstitch/config.toml", "[rules]\nallow = [\"shell git status\"]\n");
    let terminal = started(&stage, &replies(3), 120);
    enter(&terminal, "/context", "has not begun");
    enter(&terminal, "/status", "not begun: the first message starts it");
    enter(&terminal, "/export", "has not begun");
    say(&terminal, "/init keep it short", "Answer 0.", 1);
    enter(&terminal, "/status", "(1 turn)");
    enter(&terminal, "/context", "definitions of tools");
    enter(&terminal, "/permissions", "allow `shell git status`");
    let shown = terminal.everything();
    assert!(shown.contains("config.toml:2"), "a rule says where it is from: {shown}");
    enter(&terminal, "/export talk.md", "written to talk.md");
    enter(&terminal, "/clear", "continues the one before it");
    say(&terminal, "Again", "Answer 0.", 1);
    leave(terminal);
    assert_eq!(crate::chat::sessions(&stage).len(), 2);
    let missions = missions(&stage);
    assert!(missions.iter().all(|mission| !mission.contains("/clear")), "{missions:?}");
    let talk = stage.file("talk.md").unwrap();
    assert!(talk.contains("Write a file AGENTS.md") && talk.contains("keep it short"), "{talk}");
}
