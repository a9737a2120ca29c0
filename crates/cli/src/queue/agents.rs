//! The agents of a worker: those that sessions and schedules are recorded with.
//!
//! They are built by the same code as those of `resume`, with a person who cannot be asked. A session whose agent is not defined by
//! data belongs to a program in Rust, and is not known here.

use std::sync::Arc;

use backstitch::agent_file::AgentDefinition;
use backstitch::host::AgentSource;
use backstitch::id::SessionId;
use backstitch::ports::BoxFuture;
use backstitch::session::BoxError;
use backstitch::{Agent, ResumeOptions};
use serde_json::Value;
use tokio::runtime::Handle;

use crate::common::Common;
use crate::open::definition::{build_agent, definition_of};
use crate::open::guarded::refuse_to_drive;
use crate::open::{OpenStore, day_budget};
use crate::work::drive::with_rules;

/// The agents that a worker of the command knows.
pub(super) struct RecordedAgents {
    common: Common,
    place: Arc<OpenStore>,
    /// The names that it is limited to; all if there are none.
    names: Vec<String>,
}

impl RecordedAgents {
    pub(super) fn new(common: &Common, place: Arc<OpenStore>, names: Vec<String>) -> Self {
        // Nobody answers what a terminal would ask, and trust for one command is not for every session.
        Self { common: Common { no_input: true, trust: false, ..common.clone() }, place, names }
    }

    fn is_known(&self, name: &str) -> bool {
        self.names.is_empty() || self.names.iter().any(|known| known == name)
    }

    /// Builds an agent on a thread of its own, as the command does.
    async fn build<W: Future<Output = anyhow::Result<Option<AgentDefinition>>>>(
        &self,
        define: impl FnOnce(Arc<OpenStore>) -> W + Send + 'static,
    ) -> Result<Option<Agent>, BoxError> {
        let (common, place, handle) = (self.common.clone(), self.place.clone(), Handle::current());
        let building = tokio::task::spawn_blocking(move || {
            let Some(definition) = handle.block_on(define(place.clone()))? else { return Ok(None) };
            let mut agent = with_rules(&common, build_agent(&definition)?).agent;
            if definition.engine.is_none() {
                agent.budget = handle.block_on(day_budget::of_start(&common, &place, &definition))?;
            }
            Ok(Some(agent))
        });
        let built: anyhow::Result<Option<Agent>> = building.await?;
        built.map_err(Into::into)
    }
}

impl AgentSource for RecordedAgents {
    fn names(&self) -> Option<Vec<String>> {
        (!self.names.is_empty()).then(|| self.names.clone())
    }

    fn agent<'a>(
        &'a self,
        name: &'a str,
        session: SessionId,
    ) -> BoxFuture<'a, Result<Option<Agent>, BoxError>> {
        Box::pin(async move {
            if !self.is_known(name) {
                return Ok(None);
            }
            self.build(move |place| async move {
                let view = place.view(session).await?;
                if view.created().agent.is_null() {
                    return Ok(None);
                }
                refuse_to_drive(&view)?;
                Ok(Some(definition_of(&place, &view).await?))
            })
            .await
        })
    }

    fn resume_options(&self, session: SessionId) -> BoxFuture<'_, Result<ResumeOptions, BoxError>> {
        let (common, place, handle) = (self.common.clone(), self.place.clone(), Handle::current());
        Box::pin(async move {
            let limiting = tokio::task::spawn_blocking(move || {
                handle.block_on(async {
                    let view = place.view(session).await?;
                    let definition = definition_of(&place, &view).await?;
                    day_budget::of_resume(&common, &place, &definition, &view).await
                })
            });
            Ok(ResumeOptions { budget: limiting.await??, ..ResumeOptions::default() })
        })
    }

    fn defined<'a>(
        &'a self,
        name: &'a str,
        definition: &'a Value,
    ) -> BoxFuture<'a, Result<Option<Agent>, BoxError>> {
        let definition = definition.clone();
        Box::pin(async move {
            if !self.is_known(name) || definition.is_null() {
                return Ok(None);
            }
            self.build(move |_| async move { Ok(Some(AgentDefinition::from_recorded(&definition)?)) }).await
        })
    }
}
