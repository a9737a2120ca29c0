//! Merges changes into the files of a workspace.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use backstitch_core::object::Object;
use backstitch_core::ports::{
    IgnoredPaths, MergedCapture, ObjectOverlay, Reversal, ReversedCapture, UncoveredPath, UncoveredReason,
    WorkspaceError, WorkspaceMerge,
};
use backstitch_filesystem::format::names::shown;
use backstitch_filesystem::format::{self, IgnoreRules, Merge, MergedRoot};

use super::rules::Ignores;
use super::workspace::{HostWorkspace, stored_coverage};

impl HostWorkspace {
    /// Captures the files and merges changes into them. Paths that one of the two sides does not cover stay as they are.
    pub(super) fn merge_files(&self, merge: &WorkspaceMerge) -> Result<MergedCapture, WorkspaceError> {
        let before = self.capture_anew()?;
        let mut known = ObjectOverlay::new(before.objects.iter().cloned(), &*self.objects);
        let (here, there) = (self.coverage(), stored_coverage(&known, merge.theirs.coverage)?);
        let omitted: BTreeMap<&Vec<u8>, UncoveredReason> = here.omitted().chain(there.omitted()).collect();
        let excluded: BTreeSet<Vec<u8>> = omitted.keys().map(|path| (*path).clone()).collect();
        let paths: Vec<&[u8]> = merge.paths.iter().map(|path| path.as_str().as_bytes()).collect();
        let mut ignores = Ignores::default();
        let ignores: Option<&mut dyn IgnoreRules> = match merge.ignored {
            IgnoredPaths::LeaveOut => Some(&mut ignores),
            IgnoredPaths::Merge => None,
        };
        let merge = Merge {
            base: merge.base,
            ours: before.root,
            theirs: merge.theirs.root,
            paths: &paths,
            excluded: &excluded,
            resolution: merge.resolution,
        };
        let MergedRoot { root, objects, conflicts, decided, left_out } =
            format::merge(&known, &merge, ignores)?;
        objects.iter().for_each(|object| known.insert(object.clone()));
        let changes = format::diff(&known, before.root, root)?;
        let left_out = left_out.iter().map(|path| UncoveredPath {
            path: shown(path),
            reason: omitted.get(path).copied().unwrap_or(UncoveredReason::Ignored),
            bytes: None,
        });
        let left_out = left_out.collect();
        Ok(MergedCapture { before, after: root, objects, changes, conflicts, decided, left_out })
    }
}

impl HostWorkspace {
    /// Captures the files as if steps of a session had been undone. Paths that one of the states does not cover stay as they
    /// are: a path that was not covered and is now would count as one that a step created.
    pub(super) fn reverse_files(&self, reversal: &Reversal) -> Result<ReversedCapture, WorkspaceError> {
        let captured = self.capture_anew()?;
        let known = ObjectOverlay::new(captured.objects.iter().cloned(), &*self.objects);
        let states = reversal.steps.iter().flat_map(|step| [step.before, step.after]).chain(reversal.open);
        let coverages: HashSet<_> = states.chain([reversal.target]).map(|state| state.coverage).collect();
        let here = self.coverage();
        let mut excluded: BTreeSet<Vec<u8>> = here.omitted().map(|(path, _)| path.clone()).collect();
        for coverage in coverages {
            let there = stored_coverage(&known, coverage)?;
            excluded.extend(there.omitted().map(|(path, _)| path.clone()));
        }
        format::reversed(captured, &*self.objects, reversal, excluded)
    }
}

/// The `.gitignore` files of the directories that a merge walks through.
impl IgnoreRules for Ignores {
    fn enter(&mut self, directory: &[u8], content: &Object) {
        Ignores::enter(self, directory, content.id(), || content.bytes().to_vec());
    }

    fn leave(&mut self) {
        Ignores::leave(self);
    }

    fn is_ignored(&self, path: &[u8], is_directory: bool) -> bool {
        Ignores::is_ignored(self, path, is_directory)
    }
}
