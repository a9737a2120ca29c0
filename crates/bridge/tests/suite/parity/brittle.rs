//! A resource that a call can break, so that its state after the call cannot be captured.

use backstitch_core::execution::{PreparedRestore, ResourceSnapshot, Resources, Snapshotable};
use backstitch_core::journal::Effect;
use backstitch_core::ports::WriteMode;
use backstitch_core::session::BoxError;
use backstitch_core::tool::{ResourceUse, Tool, ToolContext, ToolError, ToolResult, WorkspaceUse};
use backstitch_filesystem::FilePath;
use backstitch_testkit::tool::Counter;

/// A resource whose snapshot fails once it is broken.
#[derive(Debug, Default)]
struct Brittle {
    is_broken: bool,
}

impl Snapshotable for Brittle {
    fn snapshot_name(&self) -> &'static str {
        "brittle"
    }

    fn snapshot(&self) -> Result<ResourceSnapshot, BoxError> {
        if self.is_broken {
            return Err("it is broken".into());
        }
        ResourceSnapshot::of(&())
    }

    fn prepare_restore(&self, _: &ResourceSnapshot) -> Result<PreparedRestore<Self>, BoxError> {
        Ok(PreparedRestore::new(|here: &mut Self| {
            here.is_broken = false;
            Ok(())
        }))
    }
}

/// The resources of a session: a counter, and one that can break.
pub(super) fn resources() -> Resources {
    let builder = Resources::builder().with_snapshotable(Counter::default());
    builder.with_snapshotable(Brittle::default()).build().unwrap()
}

/// A tool that succeeds, with a resource that cannot be captured.
pub(super) fn breaking() -> Tool {
    let builder = Tool::builder("act_and_break", "Changes a file, and breaks a resource.").unwrap();
    builder.effect(Effect::Workspace).workspace(WorkspaceUse::Write).resources(ResourceUse::Write).handler(
        |context: ToolContext, (): ()| async move {
            let path = FilePath::new("file.txt")?;
            context.filesystem()?.write_bytes(&path, b"changed", WriteMode::Overwrite)?;
            let counter = context.resource_mut::<Counter>()?;
            counter.ok_or_else(|| ToolError::new("there is no counter"))?.count(5);
            let brittle = context.resource_mut::<Brittle>()?;
            brittle.ok_or_else(|| ToolError::new("there is nothing to break"))?.is_broken = true;
            Ok(ToolResult::ok("done"))
        },
    )
}
