//! `tag`: sets and removes tags of a session.

use std::process::ExitCode;

use backstitch::journal::{TagChange, TagRefused};
use clap::Args;

use crate::common::Common;
use crate::look::list::tag;
use crate::open::{OpenStore, short};
use crate::report::Report;
use crate::usage::Usage;

#[derive(Args)]
pub(crate) struct Tag {
    /// Session: its id, at least 4 characters of its beginning or end, or its name.
    session: String,
    /// Tags to add, or to give another value. Without any, the tags of the session are printed.
    #[arg(value_name = "KEY=VALUE", value_parser = tag)]
    tags: Vec<(String, String)>,
    /// Tag to remove. Can be repeated.
    #[arg(long, value_name = "KEY")]
    remove: Vec<String>,
}

impl Tag {
    pub(crate) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        let removed = self.remove.into_iter().map(TagChange::remove);
        let set = self.tags.into_iter().map(|(key, value)| TagChange::set(key, value));
        let changes: Result<Vec<TagChange>, TagRefused> = removed.chain(set).collect();
        let changes = changes.map_err(|error| Usage(error.to_string()))?;
        let (place, session) = OpenStore::with_session(common, Some(&self.session)).await?;
        let tagged = place.runtime.tag_session(session, &changes).await?;
        let tags: Vec<String> = tagged.tags.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let line = match tags.is_empty() {
            true => format!("session {} has no tags", short(session)),
            false => format!("session {}: {}", short(session), tags.join(", ")),
        };
        Ok(Report::new(&tagged).line(line).print(common))
    }
}
