//! What a redaction concerns: sessions, objects, and traces of the value that it leaves.
//!
//! Planning reads the whole store and changes nothing. Objects are found by their content, since an object
//! that no record names any more holds the value just as well. An object that only sessions outside the
//! family need is left to them.

use std::collections::BTreeSet;

use backstitch_core::id::SessionId;
use backstitch_core::journal::WorkspaceRoot;
use backstitch_core::object::ObjectId;
use backstitch_core::ports::StoreError;
use backstitch_core::redaction::SensitiveValue;

use super::Contents;
use super::candidates::CandidateReach;
use crate::references::References;

/// What a redaction concerns.
pub(crate) struct Plan {
    /// The sessions to redact, in the order of their creation.
    pub(crate) family: Vec<SessionId>,
    /// Objects that records of the family name. Each is replaced by a redacted copy.
    pub(crate) contents: BTreeSet<ObjectId>,
    /// Objects that lose their content: files of the family, and objects that nothing needs.
    pub(crate) files: BTreeSet<ObjectId>,
    /// Paths of these files in the latest workspace roots of the family.
    pub(crate) paths: BTreeSet<String>,
    /// Trees and manifests of the family with the value in a file name.
    pub(crate) file_names: BTreeSet<ObjectId>,
    /// Sessions outside the family that need one of the objects.
    pub(crate) shared_with: Vec<SessionId>,
    /// Sessions outside the family that hold the value themselves.
    pub(crate) elsewhere: Vec<SessionId>,
}

/// Traces of the value in one session.
#[derive(Default)]
struct Traces {
    /// Objects that records name.
    direct: BTreeSet<ObjectId>,
    /// Objects below workspace roots.
    files: BTreeSet<ObjectId>,
    /// Objects that hold file names.
    names: BTreeSet<ObjectId>,
    latest_root: Option<WorkspaceRoot>,
    /// True if a record or an inbox item holds the value.
    in_text: bool,
}

impl Traces {
    fn objects(&self) -> impl Iterator<Item = &ObjectId> {
        self.direct.iter().chain(&self.files)
    }
}

impl Plan {
    pub(crate) fn new(
        contents: &dyn Contents,
        session: SessionId,
        value: &SensitiveValue,
    ) -> Result<Self, StoreError> {
        let origins = contents.origins()?;
        if origins.0.iter().all(|(known, _)| *known != session) {
            return Err(StoreError::NotFound { session });
        }
        let family = origins.family(session);
        let candidates = contents.candidates(value)?;
        let mut reach = CandidateReach::new(contents, &candidates);
        let (mut own, mut others) = (Vec::new(), Vec::new());
        for (session, _) in &origins.0 {
            let mut traces = Traces::default();
            contents.texts(*session, &mut |text| traces.add(text, value, &mut reach))?;
            match family.contains(session) {
                true => own.push(traces),
                false => others.push((*session, traces)),
            }
        }

        // Losing a list of names would lose all files in it.
        let all = || own.iter().chain(others.iter().map(|(_, traces)| traces));
        let lists: BTreeSet<ObjectId> =
            all().flat_map(|traces| &traces.names).copied().chain(candidates.trees()).collect();
        let needed: BTreeSet<ObjectId> = all().flat_map(Traces::objects).copied().collect();
        let unused = candidates.blobs().filter(|id| !needed.contains(id));
        let is_content = |id: &ObjectId| !lists.contains(id);
        let contents: BTreeSet<ObjectId> =
            own.iter().flat_map(|traces| &traces.direct).copied().filter(is_content).collect();
        let files = own.iter().flat_map(|traces| &traces.files).copied().chain(unused);
        let files: BTreeSet<ObjectId> = files.filter(|id| is_content(id) && !contents.contains(id)).collect();
        let is_redacted = |id: &ObjectId| contents.contains(id) || files.contains(id);

        let mut paths = BTreeSet::new();
        for root in own.iter().filter_map(|traces| traces.latest_root) {
            reach.paths(root.tree, &is_redacted, &mut paths)?;
        }
        let own_names = own.iter().flat_map(|traces| traces.objects().chain(&traces.names));
        let file_names = own_names.copied().filter(|id| lists.contains(id)).collect();
        let shares = |traces: &Traces| traces.objects().any(is_redacted);
        let holds = |traces: &Traces| traces.in_text || traces.objects().any(|id| !is_redacted(id));
        let with = |is: &dyn Fn(&Traces) -> bool| -> Vec<SessionId> {
            others.iter().filter(|(_, traces)| is(traces)).map(|(session, _)| *session).collect()
        };
        let (shared_with, elsewhere) = (with(&shares), with(&holds));
        Ok(Self { family, contents, files, paths, file_names, shared_with, elsewhere })
    }
}

impl Traces {
    fn add(
        &mut self,
        text: &str,
        value: &SensitiveValue,
        reach: &mut CandidateReach<'_>,
    ) -> Result<(), StoreError> {
        self.in_text = self.in_text || value.is_in(text.as_bytes());
        if reach.is_trivial() {
            return Ok(());
        }
        let named = References::in_text(text);
        for id in &named.coverages {
            self.names.extend(reach.candidate(*id));
        }
        let direct = named.objects.iter().filter(|id| !named.coverages.contains(id));
        self.direct.extend(direct.filter_map(|id| reach.candidate(*id)));
        for root in &named.roots {
            let found = reach.root(*root)?;
            self.files.extend(&found.files);
            self.names.extend(&found.names);
            self.latest_root = Some(*root);
        }
        Ok(())
    }
}
