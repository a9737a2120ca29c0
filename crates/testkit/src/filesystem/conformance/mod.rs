//! Properties of every filesystem and every workspace.
//!
//! Each function checks one property, and panics if it does not hold. An implementation runs them all with
//! [`filesystem_conformance!`](crate::filesystem_conformance), which generates a test for each.
//!
//! Permitted differences are not checked: which of two errors is returned first, or what a link is.

#![allow(clippy::unwrap_used, reason = "a property that does not hold panics")]

mod limits;
mod operations;
mod paths;
mod roots;

pub use limits::*;
pub use operations::*;
pub use paths::*;
pub use roots::*;

use backstitch_core::ports::{Access, FilesystemLimits};
use backstitch_filesystem::FilePath;
use proptest::strategy::Strategy;
use proptest::test_runner::{Config, TestRunner};

use super::subject::fill;
use super::tree::Tree;
use super::{Factory, Setup, Subject};

/// Generates a test for each property. Its argument is a [`Factory`](crate::filesystem::Factory). Call it inside of a module of tests.
#[macro_export]
macro_rules! filesystem_conformance {
    ($factory:expr) => {
        $crate::filesystem_conformance! {
            $factory;
            files_are_written_and_read,
            writes_that_do_not_fit_are_refused,
            files_have_a_stat,
            directories_are_listed_by_name,
            directories_are_made,
            files_and_directories_are_deleted,
            files_and_directories_are_moved,
            moves_that_do_not_fit_are_refused,
            the_executable_flag_stays,
            bytes_are_kept_as_they_are,
            trees_may_be_deep,
            random_operations_do_as_the_model_does,
            read_only_files_are_not_changed,
            files_have_a_size_limit,
            paths_have_limits,
            hostile_paths_are_no_paths,
            strange_names_are_names,
            random_paths_stay_inside,
            equal_files_have_equal_roots,
            roots_are_those_of_git,
            what_git_refuses_is_kept,
            only_new_objects_are_given,
            restoring_writes_exactly_the_root,
            restoring_can_be_repeated,
            differences_are_reported,
            missing_objects_are_refused,
        }
    };
    ($factory:expr; $($name:ident,)*) => {
        $(
            #[test]
            fn $name() {
                $crate::filesystem::conformance::$name($factory);
            }
        )*
    };
}

/// A subject that may be written to, with these files.
fn open(factory: Factory, tree: &Tree) -> Box<dyn Subject> {
    factory(Setup { tree: tree.clone(), ..Setup::default() })
}

/// A subject that may be written to, without files.
fn open_empty(factory: Factory) -> Box<dyn Subject> {
    open(factory, &Tree::new())
}

fn open_limited(factory: Factory, limits: FilesystemLimits) -> Box<dyn Subject> {
    factory(Setup { limits, ..Setup::default() })
}

fn open_read_only(factory: Factory, tree: &Tree) -> Box<dyn Subject> {
    factory(Setup { access: Access::ReadOnly, tree: tree.clone(), ..Setup::default() })
}

fn path(text: &str) -> FilePath {
    FilePath::new(text).expect("the test gives a path")
}

/// Checks a property for random values. A failing case has few enough files to be readable.
fn for_all<S: Strategy>(strategy: S, property: impl Fn(S::Value)) {
    let config = Config { cases: 48, failure_persistence: None, ..Config::default() };
    let result = TestRunner::new(config).run(&strategy, |value| {
        property(value);
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
}

/// Replaces the files of a subject by a tree.
fn become_tree(subject: &dyn Subject, tree: &Tree) {
    let filesystem = subject.filesystem();
    for entry in filesystem.list(&FilePath::root()).expect("the root can be listed") {
        let recursion = backstitch_core::ports::Recursion::All;
        filesystem.delete(&path(&entry.name), recursion).expect("all can be deleted");
    }
    fill(subject, tree);
}
