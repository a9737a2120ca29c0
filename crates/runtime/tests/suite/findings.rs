//! Slices that tools of these tests write, and what a harness holds of them.

use backstitch_core::journal::{Position, Record};
use backstitch_core::session::{Slice, SlicePolicy};
use backstitch_runtime::{CallOutcome, CallRequest};
use serde::{Deserialize, Serialize};

use crate::harness::Harness;

/// Working state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Finding(pub(crate) String);

impl Slice for Finding {
    const NAME: &'static str = "finding";
}

/// What a tool logs, whatever comes of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Diagnosis(pub(crate) String);

impl Slice for Diagnosis {
    const NAME: &'static str = "diagnosis";
    const POLICY: SlicePolicy = SlicePolicy::Log;
}

impl Harness {
    /// Makes the calls of one turn, none of which the runtime itself fails.
    pub(crate) async fn run_all(&self, calls: Vec<CallRequest>) -> Vec<CallOutcome> {
        self.runner.run_all(calls).await.into_iter().map(Result::unwrap).collect()
    }

    pub(crate) async fn records(&self) -> Vec<Record> {
        self.live.store().read(self.live.id(), Position::START, 100_000).await.unwrap()
    }

    pub(crate) async fn findings(&self) -> Vec<String> {
        let state = self.live.state().await;
        state.execution.session.all::<Finding>().unwrap().iter().map(|finding| finding.0.clone()).collect()
    }

    pub(crate) async fn diagnoses(&self) -> Vec<String> {
        let state = self.live.state().await;
        state.execution.session.all::<Diagnosis>().unwrap().iter().map(|one| one.0.clone()).collect()
    }
}
