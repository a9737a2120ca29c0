//! The same calls through every caller leave equivalent sessions.
//!
//! A [`Case`] is a call that comes after a few others, and that succeeds or fails in one way. A caller is a function
//! that makes the calls of a case on the session of a [`Place`], and returns when nothing runs any more. What is left
//! is read in one way for all of them, from the store and the directory: see [`Picture`], which defines what is equivalent.
//! The first caller of [`CALLERS`] is the one that the others are compared with.
//!
//! To add a caller, write a `fn(&Place, &Case)` and add one line to [`CALLERS`].
//! It has to use the tools of [`Place::tools`] with the reducers, the resources and the workspace of
//! [`Place::options`], on the session [`Place::SESSION`] of [`Place::store`], and to do what the [`Trouble`] of the case asks for. A
//! caller in another process starts [`server::command`], which is an MCP server over all of this.

mod brittle;
mod case;
mod clients;
mod engines;
mod loops;
mod outside;
mod picture;
mod place;
mod programs;
mod server;

use case::{Case, Trouble};
use picture::Picture;
use place::Place;

/// Makes the calls of a case.
type Caller = fn(&Place, &Case);

/// All callers, with their names.
const CALLERS: [(&str, Caller); 9] = [
    ("the loop with JSON calls", loops::json),
    ("a Lisp program", loops::lisp),
    ("a program outside, in this process", outside::call),
    ("an engine in this process", engines::engine),
    ("Claude Code, driven by the bridge", programs::claude_code),
    ("Codex, driven by the bridge", programs::codex),
    ("an MCP client by hand, over standard input and output", clients::by_hand),
    ("our MCP client, over standard input and output", clients::ours),
    ("the MCP client for Python, over standard input and output", clients::python),
];

/// How often a case is begun again whose call was stopped before it had done anything.
const ATTEMPTS: usize = 20;

/// Lets a caller make the calls of a case.
fn picture(caller: Caller, case: &Case) -> Option<Picture> {
    for _ in 0..ATTEMPTS {
        let place = Place::new(case);
        caller(&place, case);
        let picture = Picture::of(&place, case)?;
        if picture.has_acted(case) {
            return Some(picture);
        }
    }
    panic!("{}: the call never acted within its time limit", case.name)
}

fn check(case: &Case) {
    let mut expected = None;
    for (name, caller) in CALLERS {
        // A caller that is not installed has said so.
        let Some(picture) = picture(caller, case) else { continue };
        let expected = expected.get_or_insert_with(|| picture.clone());
        case.check(&picture, name);
        picture.assert_equivalent(expected, case, &format!("{}: {name}", case.name));
    }
}

macro_rules! cases {
    ($($name:ident,)*) => {
        $(
            #[test]
            fn $name() {
                check(&case::$name());
            }
        )*
    };
}

cases! {
    success,
    handler_error,
    unsuccessful_result,
    refused_by_the_handler,
    panic,
    timeout,
    reducer_refusal,
    reducer_panic,
    invalid_arguments,
    unknown_tool,
    capture_error,
    cancellation,
    denied_approval,
    spent_budget,
}
