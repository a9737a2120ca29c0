//! An agent whose session has a value in chosen places.

use std::sync::Arc;

use backstitch_core::execution::{PreparedRestore, ResourceSnapshot, Resources, Snapshotable};
use backstitch_core::journal::Effect;
use backstitch_core::message::Part;
use backstitch_core::ports::WriteMode;
use backstitch_core::session::BoxError;
use backstitch_core::tool::{ResourceUse, Tool, ToolContext, ToolError, ToolResult, WorkspaceUse};
use backstitch_filesystem::FilePath;
use backstitch_providers::ScriptedReply;
use backstitch_runtime::{Agent, SubAgent, Tools};
use serde_json::{Value, json};

use crate::findings::{Diagnosis, Finding};
use crate::tailor::{keep, reply, scripted, with_approval};

/// Where a value may be.
pub(crate) const PLACES: [&str; 21] = [
    "mission",
    "system",
    "answer",
    "arguments",
    "spaced",
    "state",
    "log",
    "result",
    "value",
    "parts",
    "large",
    "large value",
    "error",
    "file",
    "rescue",
    "step",
    "resource",
    "large resource",
    "sub-agent",
    "note",
    "inbox",
];

/// A snapshotable resource with a text.
pub(crate) struct Spool(String);

impl Snapshotable for Spool {
    fn snapshot_name(&self) -> &'static str {
        "spool"
    }

    fn snapshot(&self) -> Result<ResourceSnapshot, BoxError> {
        ResourceSnapshot::of(&json!({ "thread": self.0 }))
    }

    fn prepare_restore(&self, snapshot: &ResourceSnapshot) -> Result<PreparedRestore<Self>, BoxError> {
        let thread = snapshot.to_json()?["thread"].as_str().ok_or("no thread")?.to_owned();
        Ok(PreparedRestore::new(move |here: &mut Self| {
            here.0 = thread;
            Ok(())
        }))
    }
}

pub(crate) fn resources() -> Resources {
    Resources::builder().with_snapshotable(Spool("plain".to_owned())).build().unwrap()
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Leak {
    place: String,
}

async fn leak(context: ToolContext, place: &str, value: &str) -> Result<ToolResult, ToolError> {
    let write = |path: &str| -> Result<(), ToolError> {
        let text = format!("# config\nkey = {value}\n");
        Ok(context.filesystem()?.write_bytes(&FilePath::new(path)?, text.as_bytes(), WriteMode::Overwrite)?)
    };
    Ok(match place {
        "state" => {
            let text = format!("found {value}");
            context.session(|draft| draft.append(Finding(text)).map(|_| ()))??;
            ToolResult::ok("kept")
        }
        "log" => {
            let text = format!("saw {value}");
            context.session(|draft| draft.append(Diagnosis(text)).map(|_| ()))??;
            ToolResult::ok("logged")
        }
        "result" => ToolResult::ok(format!("it is {value}!")),
        "value" => {
            let nested = json!({ "deep": [value, { value: 1 }] }).to_string();
            ToolResult::ok("").with_value(json!({ "text": value, "nested": nested }))?
        }
        "parts" => ToolResult::ok("parts").with_part(Part::text(format!("a part: {value}"))),
        "large" => ToolResult::ok(format!("line with {value}\n").repeat(6_000)),
        "large value" => ToolResult::ok("").with_value(json!({ "rows": vec![value; 8_000] }))?,
        "error" => return Err(ToolError::new(format!("no access with {value}"))),
        "file" => {
            write("config.toml")?;
            ToolResult::ok("written")
        }
        "rescue" => {
            write("broken.toml")?;
            return Err(ToolError::new("it tore"));
        }
        "step" => {
            let charged: Value = context.step("charge", async { Ok(json!({ "card": value })) }).await?;
            ToolResult::ok(format!("charged {}", charged.is_object()))
        }
        "resource" | "large resource" => {
            let text = if place == "resource" { value.to_owned() } else { format!("{value} ").repeat(8_000) };
            context.resource_mut::<Spool>()?.unwrap().0 = text;
            ToolResult::ok("wound")
        }
        _ => ToolResult::ok("nothing"),
    })
}

fn leaking(value: &str) -> Tool {
    let value = value.to_owned();
    Tool::builder("leak", "Leaks.")
        .unwrap()
        .effect(Effect::Workspace)
        .workspace(WorkspaceUse::Write)
        .resources(ResourceUse::Write)
        .handler(move |context: ToolContext, wanted: Leak| {
            let value = value.clone();
            async move { leak(context, &wanted.place, &value).await }
        })
}

/// A tool that takes any text.
fn noting() -> Tool {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Noted {
        text: String,
    }
    Tool::builder("note", "Notes.")
        .unwrap()
        .effect(Effect::Pure)
        .workspace(WorkspaceUse::None)
        .handler(|_, noted: Noted| async move { Ok(ToolResult::ok(format!("{} bytes", noted.text.len()))) })
}

/// An agent whose first turns put a value into these places, and which then waits for the approval of a call.
/// After that it answers.
pub(crate) fn agent(value: &str, places: &[&str]) -> Agent {
    let has = |place: &str| places.contains(&place);
    let mut replies: Vec<ScriptedReply> = Vec::new();
    for place in places {
        match *place {
            "answer" => replies.push(reply(&format!("I use {value}."), &[("note", json!({"text": "x"}))])),
            "arguments" => {
                let calls = [("note", json!({"text": format!("<{value}>")}))];
                replies.push(reply("", &calls));
            }
            "spaced" => {
                let mut spaced = reply("", &[("note", json!({"text": value}))]);
                let text = format!("{{ \"text\" :  {} }}", Value::from(value));
                spaced.calls[0].arguments_text = Some(text);
                replies.push(spaced);
            }
            "sub-agent" => replies.push(reply("", &[("helper", json!({"mission": format!("try {value}")}))])),
            "mission" | "system" | "note" | "inbox" => {}
            place => replies.push(reply("", &[("leak", json!({ "place": place }))])),
        }
    }
    replies.push(reply("may I", &[("keep", json!({"text": "thread"}))]));
    replies.push(reply("done", &[]));
    let helper = scripted(vec![
        reply("", &[("leak", json!({"place": "file"})), ("leak", json!({"place": "large"}))]),
        reply(&format!("helped with {value}"), &[]),
    ]);
    let helper = helper.tools(Tools::new([leaking(value)]).unwrap());
    let helper = SubAgent::new("helper", "Helps.", helper).unwrap();
    let keep = with_approval(keep(Effect::Workspace, Arc::default()));
    let tools = Tools::new([leaking(value), noting(), keep, helper.into_tool()]).unwrap();
    let system = if has("system") { format!("You sew. The key is {value}.") } else { "You sew.".to_owned() };
    scripted(replies).instructions(&system).tools(tools)
}
