//! Slices that tools of these tests write, and access to them through a harness.

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

/// An item of a log, which is kept even if its call fails.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Diagnosis(pub(crate) String);

impl Slice for Diagnosis {
    const NAME: &'static str = "diagnosis";
    const POLICY: SlicePolicy = SlicePolicy::Log;
}

impl Harness {
    /// Runs the calls of one turn. Panics on errors of the runtime itself.
    pub(crate) async fn run_all(&self, calls: Vec<CallRequest>) -> Vec<CallOutcome> {
        self.runner.run_all(calls).await.into_iter().map(Result::unwrap).collect()
    }

    pub(crate) async fn records(&self) -> Vec<Record> {
        self.live.store().read(self.live.id(), Position::START, 100_000).await.unwrap()
    }

    pub(crate) async fn findings(&self) -> Vec<String> {
        let state = self.live.state().await;
        state.session.all::<Finding>().unwrap().iter().map(|finding| finding.0.clone()).collect()
    }

    pub(crate) async fn diagnoses(&self) -> Vec<String> {
        let state = self.live.state().await;
        state.session.all::<Diagnosis>().unwrap().iter().map(|one| one.0.clone()).collect()
    }
}
