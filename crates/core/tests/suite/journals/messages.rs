//! Messages for random and hand-written journals.

use backstitch_core::id::CallId;
use backstitch_core::journal::ProviderSidecar;
use backstitch_core::message::{
    Arguments, Content, Message, OptionCall, OptionResult, Part, PolicyName, RoleHint,
};
use serde_json::Value;

fn policy(name: &str) -> PolicyName {
    PolicyName::new(name).unwrap()
}

pub(crate) fn parts(hint: RoleHint, text: &str) -> Message {
    let who = match hint {
        RoleHint::System => "prompt",
        RoleHint::User => "ada",
        RoleHint::Assistant => "planner",
        RoleHint::Tool => "search",
    };
    let content = Content::Parts(vec![Part::text(text)].into());
    Message { role_hint_for_llm: Some(hint), ..Message::new(policy(who), content) }
}

pub(crate) fn call(id: CallId, arguments: &str) -> Message {
    let call = OptionCall::new(id, "search", Arguments::from_text(arguments));
    Message {
        role_hint_for_llm: Some(RoleHint::Assistant),
        ..Message::new(policy("planner"), Content::OptionCall(call))
    }
}

pub(crate) fn result(id: CallId, value: Value) -> Message {
    let result = OptionResult::new(id, "search", value);
    Message {
        role_hint_for_llm: Some(RoleHint::Tool),
        ..Message::new(policy("search"), Content::OptionResult(result))
    }
}

pub(crate) fn failure(id: CallId, text: &str) -> Message {
    let mut message = result(id, Value::Null);
    if let Content::OptionResult(result) = &mut message.content {
        result.is_error = true;
        result.error_message = Some(text.to_owned());
    }
    message
}

pub(crate) fn sidecar(payload: &str) -> ProviderSidecar {
    ProviderSidecar {
        provider: "acme".into(),
        model: "acme-1".into(),
        payload: Some(payload.into()),
        ..ProviderSidecar::default()
    }
}
