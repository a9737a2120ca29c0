//! A program outside that shares this process, such as one that embeds the runtime.

use std::sync::Arc;

use backstitch_core::message::PolicyName;
use backstitch_runtime::{Agent, FunctionPolicy, OutsideCall, OutsideCalls, Runtime};
use tokio_util::sync::CancellationToken;

use super::place::{Place, threads};
use super::{Case, Trouble};

/// Opens the session for calls of a program outside, or creates it.
pub(super) async fn opened(place: &Place, runtime: &Runtime) -> Arc<OutsideCalls> {
    let name = PolicyName::new("outside").unwrap();
    let policy = FunctionPolicy::new(name, |_| async { Err("there is no model".into()) });
    let agent = place.complete(Agent::new("tests/parity").policy(policy).tools(Place::tools()));
    let options = place.options();
    let driver = if runtime.view(Place::session()).await.is_ok() {
        runtime.open(Place::session(), agent, options).await
    } else {
        runtime.create(agent, options).await
    };
    OutsideCalls::open(driver.unwrap()).await.unwrap()
}

/// Ends the calls and releases the session.
pub(super) async fn closed(calls: &OutsideCalls) {
    calls.give_up_waiting();
    calls.close().await.unwrap();
    calls.session().release().await.unwrap();
}

pub(super) fn call(place: &Place, case: &Case) {
    let (threads, runtime) = (threads(), place.runtime());
    let calls = threads.block_on(opened(place, &runtime));
    for spec in case.calls() {
        let cancel = CancellationToken::new();
        let call = OutsideCall {
            call_id: threads.block_on(calls.identify(None)),
            id: None,
            name: spec.name.clone(),
            arguments: spec.arguments.as_object().cloned().unwrap(),
            cancel: cancel.clone(),
            approver: None,
        };
        std::thread::scope(|scope| {
            let running = scope.spawn(|| threads.block_on(calls.call(call)));
            if spec.name == case.call.name && spec.arguments == case.call.arguments {
                match case.trouble {
                    Trouble::Cancelled => {
                        place.wait_for_begin();
                        cancel.cancel();
                    }
                    Trouble::Denied => place.deny(),
                    Trouble::None | Trouble::Budget => {}
                }
            }
            running.join().unwrap().unwrap();
        });
    }
    threads.block_on(closed(&calls));
}
