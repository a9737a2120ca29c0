//! Capturing a workspace, and putting it back.

use std::os::fd::AsFd as _;

use backstitch_core::filesystem::format::empty_tree;
use backstitch_core::journal::WorkspaceRoot;
use backstitch_core::ports::{Captured, Restored, Uncovered, WorkspaceError};

use super::restore::{Progress, Restore};
use super::scan::{Purpose, Scan, ScanLimits, manifest_of, report};
use super::workspace::{HostWorkspace, State};
use crate::coverage::Coverage;

/// A capture of what is about to be overwritten.
#[derive(Debug, Clone, PartialEq)]
pub struct Rescued {
    /// What was captured. What did not fit is not in it.
    pub captured: Captured,
    /// What did not fit, or could not be captured, although it is covered: it is lost if the files are put back.
    pub left_out: Vec<Uncovered>,
}

impl HostWorkspace {
    /// Captures the files, and decides what is covered. Directories that were over their budget stay uncovered without
    /// being walked again, as long as this process lives.
    pub(super) fn capture_anew(&self) -> Result<Captured, WorkspaceError> {
        let mut state = self.state();
        let fixed = if state.captured { state.coverage.sticky() } else { Coverage::default() };
        let (captured, coverage) = self.scan(&mut state, &fixed, self.limits)?;
        self.keep_coverage(&mut state, coverage)?;
        self.save_if_worth(&mut state);
        Ok(captured)
    }

    /// Captures the files with a coverage that was decided before: what it leaves out stays left out.
    pub fn capture_covering(&self, coverage: &Coverage) -> Result<Captured, WorkspaceError> {
        let mut state = self.state();
        let (captured, _) = self.scan(&mut state, coverage, self.limits)?;
        self.save_if_worth(&mut state);
        Ok(captured)
    }

    /// Captures the files before they are put back, within a budget of new content. What does not fit is listed.
    pub fn rescue_capture(&self, byte_budget: u64) -> Result<Rescued, WorkspaceError> {
        let mut state = self.state();
        let fixed = state.coverage.clone();
        let limits = ScanLimits { spend: Some(byte_budget), ..self.limits };
        let (captured, found) = self.scan(&mut state, &fixed, limits)?;
        let known: Vec<_> = fixed.uncovered().map(|uncovered| uncovered.path).collect();
        let decided: Vec<_> = found.uncovered().map(|uncovered| uncovered.path).collect();
        let lost =
            |uncovered: &&Uncovered| decided.contains(&uncovered.path) && !known.contains(&uncovered.path);
        let left_out = captured.uncovered.iter().filter(lost).cloned().collect();
        Ok(Rescued { captured, left_out })
    }

    fn scan(
        &self,
        state: &mut State,
        fixed: &Coverage,
        limits: ScanLimits,
    ) -> Result<(Captured, Coverage), WorkspaceError> {
        let previous = state.index.take();
        let mut scan =
            Scan::new(&self.rules, &mut state.ignores, fixed, &*self.objects, limits, Purpose::Capture);
        let node = scan.root(self.root.as_fd(), previous)?;
        let tree = match node.tree {
            Some(tree) => tree,
            // The workspace itself is the one directory that git holds even if it is empty.
            None => scan.give_out(empty_tree())?,
        };
        let manifest = scan.give_out(manifest_of(&node).to_object())?;
        state.unsaved += scan.read;
        state.read += scan.read as u64;
        let objects = std::mem::take(&mut scan.new);
        let (uncovered, coverage) = report(&node);
        state.index = Some(node);
        Ok((Captured { root: WorkspaceRoot { tree, manifest }, objects, uncovered }, coverage))
    }

    pub(super) fn put_back(
        &self,
        root: WorkspaceRoot,
        coverage: &Coverage,
        progress: Option<Progress<'_>>,
    ) -> Result<Restored, WorkspaceError> {
        let mut state = self.state();
        let state = &mut *state;
        let previous = state.index.take();
        let objects = &*self.objects;
        let mut scan =
            Scan::new(&self.rules, &mut state.ignores, coverage, objects, self.limits, Purpose::Restore);
        let node = scan.root(self.root.as_fd(), previous)?;
        state.unsaved += scan.read;
        state.read += scan.read as u64;
        let node = state.index.insert(node);
        Restore::new(objects, &self.rules, coverage).run(self.root.as_fd(), node, root, progress)
    }
}
