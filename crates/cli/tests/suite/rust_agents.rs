//! Sessions of agents that a program in Rust has built: the command changes their history and their files without the agent,
//! and leaves alone what the agent left out.

use backstitch::WorkspaceSpec;
use backstitch::prelude::*;
use serde_json::json;

use crate::stage::{Stage, text_of};

/// Sews a row.
#[tool(effect = "workspace")]
async fn sew(
    context: ToolContext,
    /// The row.
    row: u32,
) -> Result<String, ToolError> {
    let text = format!("row {row}\n");
    context.filesystem()?.write_bytes(&"seam.txt".parse()?, text.as_bytes(), WriteMode::Overwrite)?;
    Ok(text)
}

const SCRIPT: &str = r#"
[[reply]]
call = [{ name = "sew", arguments = { row = 1 } }]
[[reply]]
call = [{ name = "sew", arguments = { row = 2 } }]
[[reply]]
text = "Done."
"#;

/// Runs an agent in this process, which leaves out its logs. Returns the session.
fn session_of_program(stage: &Stage) -> String {
    let mut files = WorkspaceSpec::new(stage.path("files"));
    files.excludes = vec!["*.log".to_owned()];
    let policy = ScriptedPolicy::from_toml(SCRIPT).unwrap();
    let agent = Agent::new("tailor").policy(policy).tools([sew()]).workspace(files);
    let process = tokio::runtime::Runtime::new().unwrap();
    process.block_on(async {
        let runtime = Runtime::at(stage.path("store/store.db")).unwrap();
        let run = runtime.start(&agent, "Sew").await.unwrap();
        assert_eq!(run.answer::<String>().await.unwrap(), "Done.");
        run.session().to_string()
    })
}

#[test]
fn the_command_changes_the_history_of_a_session_that_a_program_has_started() {
    let stage = Stage::new();
    let session = session_of_program(&stage);
    std::fs::write(stage.path("files/sewing.log"), "by hand").unwrap();
    let seam = || stage.file("seam.txt");
    let rewound = stage.json(&["rewind", &session, "start"]);
    assert_eq!((rewound["restored"][0]["files"][0]["path"].as_str(), seam()), (Some("seam.txt"), None));
    stage.run(&["undo", &session]).worked_quietly();
    assert_eq!(seam().as_deref(), Some("row 2\n"));
    stage.run(&["redo", &session]).worked_quietly();
    assert_eq!(seam(), None);
    stage.run(&["undo", &session]).worked_quietly();
    let restored = stage.json(&["restore", ".", "--from", "turn:1", "--session", &session]);
    assert_eq!(restored["files"], json!([{"path": "seam.txt", "change": "modified"}]));
    assert_eq!(seam().as_deref(), Some("row 1\n"));
    assert_eq!(stage.file("sewing.log").as_deref(), Some("by hand"), "it is left out");

    let forked = stage.json(&["fork", &session]);
    let directory = stage.path("files").canonicalize().unwrap().with_file_name("files-fork-1");
    assert_eq!(forked["workspace"], text_of(&directory));
    assert_eq!(std::fs::read_to_string(directory.join("seam.txt")).unwrap(), "row 1\n");
    let refused =
        stage.run(&["fork", &session, "--workspace", &text_of(&stage.path("files/inside"))]).failed();
    assert!(refused.contains("code: workspace_refused") && refused.contains("--workspace DIR"), "{refused}");

    // The files are elsewhere now.
    std::fs::rename(stage.path("files"), stage.path("moved")).unwrap();
    std::fs::create_dir(stage.path("files")).unwrap();
    stage.run(&["rewind", &session, "start", "--workspace", &text_of(&stage.path("moved"))]).worked_quietly();
    assert!(!stage.path("moved/seam.txt").exists() && stage.path("moved/sewing.log").exists());
}
