//! Uncovered paths of a scan, for people and for the next call.

use backstitch_core::ports::{UncoveredPath, UncoveredReason};
use backstitch_filesystem::format::names::{push, shown};

use crate::coverage::Coverage;
use crate::host::index::{DirIndex, Entry};
use crate::host::rules::is_static;

/// Lists the uncovered paths below a directory, and the coverage that this scan decided.
pub(crate) fn report(root: &DirIndex) -> (Vec<UncoveredPath>, Coverage) {
    let mut report = Report::default();
    if root.flags.attributes {
        report.add(b"", UncoveredReason::Attributes, None);
    }
    report.directory(root, &mut Vec::new());
    (report.uncovered, report.coverage)
}

#[derive(Default)]
struct Report {
    uncovered: Vec<UncoveredPath>,
    coverage: Coverage,
}

impl Report {
    fn directory(&mut self, node: &DirIndex, path: &mut Vec<u8>) {
        let above = path.len();
        for (name, entry) in &node.entries {
            let mut at = |report: &mut Self, reason, bytes| {
                push(path, name);
                report.add(path, reason, bytes);
                path.truncate(above);
            };
            match entry {
                Entry::File(leaf) => {
                    if leaf.flags.linked {
                        at(self, UncoveredReason::HardLink, Some(leaf.stamp.size));
                    }
                    if leaf.flags.attributes {
                        at(self, UncoveredReason::Attributes, Some(leaf.stamp.size));
                    }
                }
                Entry::Link(_) => {}
                Entry::Directory(below) => {
                    if below.flags.attributes {
                        at(self, UncoveredReason::Attributes, None);
                    }
                    push(path, name);
                    self.directory(below, path);
                    path.truncate(above);
                }
                Entry::Uncovered(omitted) => {
                    let Some(reason) = omitted.reason else { continue };
                    at(self, reason, omitted.bytes);
                    if !is_static(reason) {
                        push(path, name);
                        self.coverage.insert(path, reason);
                        path.truncate(above);
                    }
                }
            }
        }
    }

    fn add(&mut self, path: &[u8], reason: UncoveredReason, bytes: Option<u64>) {
        self.uncovered.push(UncoveredPath { path: shown(path), reason, bytes });
    }
}
