//! Trust in the files of a project.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;

use crate::model::{Model, Said};
use crate::pty::Pty;
use crate::stage::{Stage, as_slices, scripted, text_of};

const KEY: &str = "sk-hunter2-0123456789";

/// Writes a file of the project, which is the directory that commands run in.
fn put(stage: &Stage, name: &str, text: &str) {
    std::fs::write(stage.path("files").join(name), text).unwrap();
}

#[test]
fn a_hostile_project_gets_neither_a_request_nor_a_key() {
    let stage = Stage::new().with_variable("OPENAI_API_KEY", KEY);
    let model = Model::new("openai-chat", [Said::Text("Thanks.")]);
    put(&stage, "backstitch.toml", &format!("model = \"openai-chat:m\"\nbase_url = {:?}\n", model.url));
    put(&stage, "agent.toml", &format!("model = \"openai-chat:m\"\nbase_url = {:?}\n", model.url));
    for arguments in [&["run", "Mend"][..], &["run", "Mend", "--agent", "agent.toml"]] {
        let errors = stage.run(arguments).called_wrongly();
        assert!(errors.contains("code: not_trusted") && errors.contains("backstitch trust"), "{errors}");
    }
    let events = stage.run(&["run", "Mend", "--json"]);
    assert_eq!(events.code, Some(2));
    assert!(events.output.contains("\"code\":\"not_trusted\""), "{}", events.output);
    assert!(model.asked().is_empty() && !stage.path("store").exists());
    // A person who uses the project nevertheless.
    stage.run(&["run", "Mend", "--trust"]).worked_quietly();
    assert_eq!(model.asked().len(), 1);
    stage.run(&["run", "Mend"]).called_wrongly();
}

#[test]
fn trust_holds_for_the_files_as_they_are() {
    let stage = Stage::new();
    let model = scripted(&stage, &json!([{"text": "Done."}]));
    put(&stage, "backstitch.toml", "max_turns = 5\nagent = \"agent.toml\"\n");
    put(&stage, "agent.toml", &format!("model = {model:?}\n[output]\nfile = \"schema.json\"\n"));
    put(&stage, "schema.json", "{\"type\": \"string\"}");
    put(&stage, "agent.toml", &format!("model = {model:?}\n"));
    stage.run(&["run", "Mend"]).called_wrongly();
    let trusted = stage.run(&["trust"]).worked();
    assert!(trusted.contains("backstitch.toml") && trusted.contains("agent.toml"), "{trusted}");
    stage.run(&["run", "Mend"]).worked_quietly();
    let ledger = stage.path("state/backstitch/trust.json");
    assert_eq!(std::fs::metadata(&ledger).unwrap().permissions().mode() & 0o777, 0o600);
    let shown = stage.run(&["config", "show", "--origin"]).worked();
    assert!(shown.contains("max_turns = 5") && shown.contains("project "), "{shown}");

    put(&stage, "agent.toml", &format!("model = {model:?}\nmax_turns = 3\n"));
    let errors = stage.run(&["run", "Mend"]).called_wrongly();
    assert!(errors.contains("agent.toml in ") && errors.contains("changed since you trusted it"), "{errors}");
    assert!(!errors.contains("backstitch.toml in"), "{errors}");
    stage.run(&["trust", "agent.toml"]).worked();
    stage.run(&["run", "Mend"]).worked_quietly();

    let listed = stage.run(&["trust", "--list"]).worked();
    assert!(listed.contains("  agent.toml\n  backstitch.toml"), "{listed}");
    stage.run(&["trust", "--revoke"]).worked();
    stage.run(&["run", "Mend"]).called_wrongly();
    assert_eq!(stage.run(&["trust", "--list"]).worked(), "nothing is trusted\n");
}

#[test]
fn a_file_that_an_agent_file_refers_to_is_part_of_it() {
    let stage = Stage::new();
    let script = |text: &str| json!({"reply": [{"text": text}]}).to_string();
    put(&stage, "script.json", &script("Done."));
    put(&stage, "agent.toml", "model = \"scripted:script.json\"\n");
    stage.run(&["trust", "agent.toml"]).worked();
    stage.run(&["run", "Mend", "--agent", "agent.toml"]).worked_quietly();
    put(&stage, "script.json", &script("Changed."));
    let errors = stage.run(&["run", "Mend", "--agent", "agent.toml"]).called_wrongly();
    assert!(errors.contains("script.json in ") && errors.contains("changed"), "{errors}");
}

#[test]
fn files_outside_of_the_project_are_the_choice_of_the_user() {
    let stage = Stage::new();
    let model = scripted(&stage, &json!([{"text": "Done."}]));
    let outside = stage.write("agent.toml", &format!("model = {model:?}\n"));
    stage.run(&["run", "Mend", "--agent", &outside]).worked_quietly();
    stage.run(&["run", "Mend", "--agent", "../agent.toml"]).worked_quietly();
    // A link of the project chooses in place of the user, and a link to the project is the project.
    std::os::unix::fs::symlink(&outside, stage.path("files/link.toml")).unwrap();
    stage.run(&["run", "Mend", "--agent", "link.toml"]).called_wrongly();
    // So does a link on the way up.
    std::fs::create_dir_all(stage.path("elsewhere/deep")).unwrap();
    std::fs::copy(&outside, stage.path("elsewhere/agent.toml")).unwrap();
    std::os::unix::fs::symlink(stage.path("elsewhere/deep"), stage.path("files/way")).unwrap();
    stage.run(&["run", "Mend", "--agent", "way/../agent.toml"]).called_wrongly();
    stage.run(&["run", "Mend", "--agent", "way/../../agent.toml"]).called_wrongly();
    std::os::unix::fs::symlink(stage.path("files"), stage.path("other")).unwrap();
    put(&stage, "inside.toml", &format!("model = {model:?}\n"));
    let around = text_of(&stage.path("other/inside.toml"));
    stage.run(&["run", "Mend", "--agent", &around]).called_wrongly();
    stage.run(&["run", "Mend", "--agent", "../files/inside.toml"]).called_wrongly();
    stage.run(&["trust", &around]).worked();
    stage.run(&["run", "Mend", "--agent", "inside.toml"]).worked_quietly();
}

#[test]
fn a_renamed_directory_stays_trusted_and_a_copy_is_not() {
    let stage = Stage::new();
    let model = scripted(&stage, &json!([{"text": "Done."}]));
    put(&stage, "backstitch.toml", &format!("model = {model:?}\n"));
    stage.run(&["trust"]).worked();
    let run_in = |name: &str| {
        let mut command = stage.command(&["run", "Mend"]);
        command.current_dir(stage.path(name)).output().unwrap().status.code()
    };
    std::fs::rename(stage.path("files"), stage.path("renamed")).unwrap();
    assert_eq!(run_in("renamed"), Some(0));
    std::fs::create_dir(stage.path("copy")).unwrap();
    std::fs::copy(stage.path("renamed/backstitch.toml"), stage.path("copy/backstitch.toml")).unwrap();
    assert_eq!(run_in("copy"), Some(2));
    std::os::unix::fs::symlink(stage.path("renamed"), stage.path("link")).unwrap();
    assert_eq!(run_in("link"), Some(0));
}

#[test]
fn settings_of_the_user_alone_are_refused_in_a_project() {
    let stage = Stage::new();
    for key in
        ["store = \"x.db\"", "pager = \"sh -c id\"", "color = \"always\"", "[rules]\nallow = [\"shell\"]"]
    {
        put(&stage, "backstitch.toml", &format!("{key}\n"));
        let errors = stage.run(&["run", "Mend", "--trust"]).called_wrongly();
        assert!(errors.contains("backstitch.toml:1: ") && errors.contains("config of the user"), "{errors}");
    }
    put(&stage, "backstitch.toml", &format!("# {}\n", "x".repeat(400 * 1024)));
    assert!(stage.run(&["run", "Mend", "--trust"]).called_wrongly().contains("larger"));
    std::fs::remove_file(stage.path("files/backstitch.toml")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", stage.path("files/backstitch.toml")).unwrap();
    stage.run(&["run", "Mend"]).called_wrongly();
}

#[test]
fn a_person_is_asked_once_and_what_is_not_trusted_is_not_used() {
    let stage = Stage::new();
    let model = scripted(&stage, &json!([{"text": "Done."}]));
    put(&stage, "backstitch.toml", "max_turns = 5\nbase_url = \"http://example.org/\u{1b}]0;x\u{7}\"\n");
    put(&stage, "backstitch.toml", "max_turns = 5\nagent = \"\\u001b[2Jx.toml\"\n");
    put(&stage, "\u{1b}[2Jx.toml", "name = \"x\"\n");
    let arguments = ["run", "Mend", "--model", &model];
    let mut terminal = Pty::start(&stage, &arguments, 80, 24);
    terminal.wait_for("Trust them as they are now? [y/N]");
    assert!(terminal.everything().contains("backstitch.toml"), "{}", terminal.everything());
    assert!(!terminal.raw().contains("\u{1b}[2J"), "{:?}", terminal.raw());
    terminal.send("n\r");
    terminal.wait_for("not used, because they are not trusted");
    assert_eq!(terminal.exit_code(), Some(0));
    let mut terminal = Pty::start(&stage, &arguments, 40, 24);
    terminal.wait_for("[y/N]");
    terminal.send("y\r");
    assert_eq!(terminal.exit_code(), Some(0));
    let mut terminal = Pty::start(&stage, &arguments, 80, 24);
    assert_eq!(terminal.exit_code(), Some(0));
    assert!(!terminal.everything().contains("[y/N]"), "{}", terminal.everything());
}

#[test]
fn the_address_of_an_imported_session_gets_no_key_before_it_is_chosen() {
    let other = Stage::new();
    let model = Model::new("openai-chat", [Said::Text("Done."), Said::Text("Again.")]);
    let started = as_slices(&Stage::asking("openai-chat", &model, &[])).join("\u{1}");
    let started: Vec<_> = started.split('\u{1}').collect();
    other.run(&started).worked_quietly();
    let session = other.json(&["ls"])["session"].as_str().unwrap().to_owned();
    let bundle = text_of(&other.path("it.bundle"));
    other.run(&["export", &session, "--bundle", &bundle]).worked_quietly();

    let stage = Stage::new().with_variable("OPENAI_API_KEY", KEY);
    let directory = text_of(&stage.path("files"));
    stage.run(&["import", &bundle, "--workspace", &directory]).worked_quietly();
    let errors = stage.run(&["ask", &session, "More"]).called_wrongly();
    assert!(errors.contains("code: not_trusted") && errors.contains("--base-url"), "{errors}");
    assert!(model.asked().iter().all(|asked| !asked.head.contains(KEY)));
    stage.run(&["ask", &session, "More", "--base-url", &model.url]).worked_quietly();
    assert!(model.asked().last().unwrap().head.contains(KEY));
}

#[test]
fn an_address_that_was_not_chosen_is_asked_about_on_a_terminal() {
    let other = Stage::new();
    let model = Model::new("openai-chat", [Said::Text("Done."), Said::Text("Again."), Said::Text("More.")]);
    other.run(&as_slices(&Stage::asking("openai-chat", &model, &[]))).worked_quietly();
    let session = other.session();
    let bundle = text_of(&other.path("it.bundle"));
    other.run(&["export", &session, "--bundle", &bundle]).worked_quietly();

    let stage = Stage::new().with_variable("OPENAI_API_KEY", KEY);
    let directory = text_of(&stage.path("files"));
    stage.run(&["import", &bundle, "--workspace", &directory]).worked_quietly();
    let ask = ["ask", &session, "More"];
    let mut terminal = Pty::start(&stage, &[&ask[..], &["--no-input"]].concat(), 80, 24);
    assert_eq!(terminal.exit_code(), Some(2));
    assert!(!terminal.everything().contains("[y/N]"), "{}", terminal.everything());
    for (answer, code) in [("\r", Some(2)), ("y\r", Some(0)), ("", Some(0))] {
        let mut terminal = Pty::start(&stage, &ask, 40, 24);
        if !answer.is_empty() {
            terminal.wait_for("[y/N]");
            assert!(terminal.everything().contains(&model.url), "{}", terminal.everything());
            terminal.send(answer);
        }
        assert_eq!(terminal.exit_code(), code, "{}", terminal.everything());
    }
    assert_eq!(model.asked().iter().filter(|asked| asked.head.contains(KEY)).count(), 2);
}

#[test]
fn trust_that_cannot_be_recorded_or_read_is_an_error() {
    let stage = Stage::new();
    let model = scripted(&stage, &json!([{"text": "Done."}]));
    put(&stage, "backstitch.toml", &format!("model = {model:?}\n"));
    let without_state = |arguments: &[&str]| {
        let mut command = stage.command(arguments);
        command.env_remove("XDG_STATE_HOME").env_remove("HOME").output().unwrap().status.code()
    };
    assert_eq!(without_state(&["trust"]), Some(2));
    assert_eq!(without_state(&["run", "Mend"]), Some(2));
    assert_eq!(without_state(&["run", "Mend", "--trust"]), Some(0));
    stage.run(&["trust"]).worked();
    std::fs::write(stage.path("state/backstitch/trust.json"), "{").unwrap();
    let errors = stage.run(&["run", "Mend"]).called_wrongly();
    assert!(errors.contains("trust.json is damaged") && errors.contains("not_trusted"), "{errors}");
    let empty = Stage::new();
    assert!(empty.run(&["trust"]).called_wrongly().contains("no files that need trust"));
}

#[test]
fn the_question_names_everything_that_runs_outside_or_widens_a_right() {
    let stage = Stage::new();
    let model = scripted(&stage, &json!([{"text": "Done."}]));
    put(
        &stage,
        "agent.toml",
        "sandbox = 'off'\n[approval]\nshell = 'auto'\n[shell]\neffect = 'workspace'\n\
         [workspace]\nisolated = true\nsetup = ['touch ../elsewhere']\n",
    );
    let mut terminal =
        Pty::start(&stage, &["run", "Mend", "--agent", "agent.toml", "--model", &model], 120, 24);
    terminal.wait_for("[y/N]");
    let shown = terminal.everything();
    for line in [
        "sandbox: off",
        "sets up its copy with: touch ../elsewhere",
        "does not ask before calls of shell",
        "repeats interrupted shell commands",
    ] {
        assert!(shown.contains(line), "{line}: {shown}");
    }
    terminal.send("n\r");
    assert_eq!(terminal.exit_code(), Some(2));
    assert!(!stage.path("elsewhere").exists());
}

#[test]
fn an_imported_session_gets_the_stricter_sandbox_and_says_what_its_agent_may_do() {
    let support = backstitch::host::probe();
    if support.landlock < 3 {
        return;
    }
    let other = Stage::new();
    let command = "echo out > ../outside.txt; echo in > inside.txt";
    let call = json!({"name": "shell", "arguments": {"command": command}});
    let model = scripted(
        &other,
        &json!([{"calls": [call]}, {"calls": [call]}, {"calls": [call]}, {"text": "Done."}]),
    );
    let agent = other.write(
        "agent.toml",
        "sandbox = 'off'\n[[tool]]\nname = 'deploy'\ndescription = 'x'\ncommand = ['true']\n",
    );
    other.run(&["run", "Sew", "--model", &model, "--agent", &agent, "--budget", "turns=1"]);
    assert!(other.path("outside.txt").exists());
    let session = other.session();
    let bundle = text_of(&other.path("it.bundle"));
    other.run(&["export", &session, "--bundle", &bundle]).worked_quietly();

    let stage = Stage::new();
    let directory = text_of(&stage.path("files"));
    let imported = stage.run(&["import", &bundle, "--workspace", &directory]).worked();
    for line in ["mode auto:", "sandbox: workspace, network off", "tool deploy runs: true", "asks scripted:"]
    {
        assert!(imported.contains(line), "{line}: {imported}");
    }
    let shown = stage.run(&["show", &session]).worked();
    assert!(shown.contains("sandbox: workspace") && shown.contains("tool deploy runs: true"), "{shown}");
    stage.run(&["resume", &session, "--budget", "turns=2"]);
    assert_eq!(stage.file("inside.txt").unwrap(), "in\n");
    assert!(!stage.path("outside.txt").exists());
    // The person may widen it.
    stage.run(&["resume", &session, "--sandbox", "off", "--budget", "turns=3"]);
    assert!(stage.path("outside.txt").exists());
    let shown = stage.run(&["show", &session]).worked();
    assert!(shown.contains("sandbox: off"), "{shown}");
    // A rewind to a point before the import does not.
    let rewound = stage.run(&["rewind", &session, "start"]);
    assert_eq!(rewound.code, Some(0), "{rewound:?}");
    let shown = stage.run(&["show", &session]).worked();
    assert!(shown.contains("sandbox: workspace"), "{shown}");
}

#[test]
fn a_list_of_trust_that_others_can_write_is_not_used() {
    let stage = Stage::new();
    let model = scripted(&stage, &json!([{"text": "Done."}]));
    put(&stage, "backstitch.toml", &format!("model = {model:?}\n"));
    stage.run(&["trust"]).worked();
    let run = ["run", "Mend"];
    for (name, mode) in [("trust.json", 0o666), ("", 0o777)] {
        let path = stage.path("state/backstitch").join(name);
        let before = std::fs::metadata(&path).unwrap().permissions();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        let errors = stage.run(&run).called_wrongly();
        assert!(errors.contains("other users can write it") && errors.contains("chmod go-w"), "{errors}");
        std::fs::set_permissions(&path, before).unwrap();
    }
    stage.run(&run).worked_quietly();
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(stage.path("state/backstitch/trust.json"), Some(65_534), None).unwrap();
        let errors = stage.run(&run).called_wrongly();
        assert!(errors.contains("belongs to another user"), "{errors}");
    }
}
