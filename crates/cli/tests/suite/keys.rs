//! Commands that an agent runs cannot read the keys.

use serde_json::json;

use crate::model::{Model, Said};
use crate::stage::{Stage, as_slices};

#[cfg(target_os = "linux")]
#[test]
fn no_command_finds_a_key_in_the_environment_of_any_process() {
    let key = format!("sk-only-here-{}", std::process::id());
    for (provider, variable) in [("openai", "OPENAI_API_KEY"), ("gemini", "GOOGLE_API_KEY")] {
        let stage = Stage::new().with_variable(variable, &key);
        // The key is not in the text of the command itself.
        let (first, last) = key.split_at(9);
        let command = format!(
            "part='{last}'; for one in $PPID [0-9]*; do tr '\\0' '\\n' < /proc/$one/environ; done 2>/dev/null | grep -c -- '{first}'\"$part\"; \
             cd /proc; cat [0-9]*/environ 2>/dev/null | tr '\\0' '\\n' | grep -c -- '{first}'\"$part\"; \
             env | grep -c API_KEY; true"
        );
        let call = Said::Call("I look.", "shell", json!({"command": command}));
        let model = Model::new(provider, [call, Said::Text("Looked.")]);
        let ran = stage.run(&as_slices(&Stage::asking(provider, &model, &[])));
        assert_eq!(ran.worked_quietly(), "Looked.\n");
        let asked = model.asked();
        assert!(asked.iter().all(|asked| asked.head.contains(&key)), "the model is asked with the key");
        assert!(
            asked[1].body.contains("0\\\\n0\\\\n0\\\\n") || asked[1].body.contains("0\\n0\\n0\\n"),
            "{}",
            asked[1].body
        );
        assert!(!asked[1].body.contains(&key), "{}", asked[1].body);
        let stored = stage.stored_bytes();
        assert!(!stored.windows(key.len()).any(|bytes| bytes == key.as_bytes()), "the key is in the store");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_command_has_nothing_open_that_the_keys_were_handed_over_in() {
    let stage = Stage::new().with_variable("OPENAI_API_KEY", "sk-hunter2-0123456789");
    let call =
        Said::Call("I look.", "shell", json!({"command": "ls -l /proc/$PPID/fd /proc/self/fd > fds.txt"}));
    let model = Model::new("openai", [call, Said::Text("Looked.")]);
    stage.run(&as_slices(&Stage::asking("openai", &model, &[]))).worked_quietly();
    let open = stage.file("fds.txt").unwrap();
    assert!(!open.contains("memfd"), "{open}");
}
