//! After any sequence of calls, rewinds, forks and collections, each root is complete or pruned, and the
//! needed ones are complete.

use backstitch_core::journal::{Position, WorkspaceRoot};
use backstitch_core::ports::Retention;
use proptest::prelude::*;

use super::agent::Agent;
use super::garbage::{gc, is_whole};
use super::support::Temporary;

#[derive(Debug, Clone)]
enum Step {
    /// A call by a session, which leaves files with these contents.
    Call(usize, Vec<u8>),
    /// A call that does not end.
    Start(usize),
    /// A rewind to the end of an earlier call.
    Rewind(usize, usize),
    /// A fork from the end of an earlier call.
    Fork(usize, usize),
    Collect(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let session = 0..6_usize;
    prop_oneof![
        6 => (session.clone(), prop::collection::vec(0..6_u8, 1..4)).prop_map(|(s, f)| Step::Call(s, f)),
        1 => session.clone().prop_map(Step::Start),
        1 => (session.clone(), 0..9_usize).prop_map(|(s, c)| Step::Rewind(s, c)),
        1 => (session, 0..9_usize).prop_map(|(s, c)| Step::Fork(s, c)),
        2 => (0..4_u64).prop_map(Step::Collect),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// After any sequence, each root is complete or pruned, and the needed ones are complete.
    #[test]
    fn roots_are_never_broken(steps in prop::collection::vec(step(), 1..40)) {
        let store = Temporary::new();
        let mut agents = vec![Agent::new(&store, 1), Agent::new(&store, 2)];
        // For each agent, the cuts after its calls and the files there.
        let mut cuts: Vec<Vec<(Position, WorkspaceRoot)>> = vec![Vec::new(); 2];
        let mut everything: Vec<WorkspaceRoot> = Vec::new();
        let mut needed: Vec<WorkspaceRoot> = Vec::new();
        for step in steps {
            match step {
                Step::Call(who, contents) => {
                    let who = who % agents.len();
                    let texts: Vec<(String, String)> = contents.iter().enumerate()
                        .map(|(index, content)| (format!("f{index}"), format!("{content}")))
                        .collect();
                    let files: Vec<(&str, &str)> =
                        texts.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
                    let known = agents[who].root.is_none_or(|root| is_whole(&store, root));
                    prop_assert!(known, "the current files can be restored");
                    let root = agents[who].call(&files);
                    let next = agents[who].next;
                    cuts[who].push((next, root));
                    everything.push(root);
                }
                Step::Start(who) => {
                    let who = who % agents.len();
                    agents[who].start();
                    needed.extend(agents[who].root);
                }
                Step::Rewind(who, cut) => {
                    let who = who % agents.len();
                    let there = cuts[who].get(cut).copied();
                    if let Some((to, root)) = there.filter(|(_, root)| is_whole(&store, *root)) {
                        agents[who].rewind_softly(to, root);
                    }
                }
                Step::Fork(who, cut) => {
                    let who = who % agents.len();
                    let there = cuts[who].get(cut).copied();
                    if let Some((at, root)) = there.filter(|(_, root)| is_whole(&store, *root)) {
                        let mut fork = agents[who].fork(10 + agents.len() as u64, at);
                        fork.root = Some(root);
                        needed.push(root);
                        agents.push(fork);
                        cuts.push(Vec::new());
                    }
                }
                Step::Collect(keep) => {
                    gc(&store, Retention::keep_all().keep_boundaries(keep));
                }
            }
            for root in needed.iter().chain(agents.iter().filter_map(|agent| agent.root.as_ref())) {
                prop_assert!(is_whole(&store, *root), "it is needed: {root:?}");
            }
        }
        for root in everything {
            is_whole(&store, root);
        }
        prop_assert!(store.verify().unwrap().is_sound());
    }
}
