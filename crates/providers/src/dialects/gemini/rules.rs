//! The requests that Gemini refuses.

use serde_json::Value;

use crate::rules::{
    Rule, check_unique, each, each_in, ensure, field, has_text, is_plain_name, items, rule, text,
};

pub(super) const RULES: &[Rule] = &[
    rule("gemini.contents", "there are contents of users and models, none empty", |request| {
        ensure(!contents(request).is_empty(), || "contents".into())?;
        each(request, "contents[]", |content| {
            matches!(text(content, "role"), "user" | "model") && !items(content, "parts").is_empty()
        })
    }),
    rule("gemini.asks", "the last content is of a user", |request| {
        ensure(contents(request).last().is_some_and(is_users), || "the last content".into())
    }),
    rule("gemini.begins", "the first content is of a user", |request| {
        ensure(contents(request).first().is_some_and(is_users), || "contents[0]".into())
    }),
    rule("gemini.answered", "as many responses as calls follow at once", |request| {
        let all = contents(request);
        for (index, content) in all.iter().enumerate().filter(|(_, content)| !calls(content).is_empty()) {
            let made = calls(content).len();
            let given = all.get(index + 1).map_or(0, |next| responses(next).len());
            ensure(made == given, || format!("contents[{index}]: {made} calls, {given} responses"))?;
            ensure(text(content, "role") == "model", || format!("contents[{index}].role"))?;
        }
        Ok(())
    }),
    rule("gemini.response-has-call", "responses stand right behind their calls", |request| {
        let mut made = 0;
        for (index, content) in contents(request).iter().enumerate() {
            let given = responses(content).len();
            ensure(given == 0 || (made == given && is_users(content)), || format!("contents[{index}]"))?;
            made = calls(content).len();
        }
        Ok(())
    }),
    rule("gemini.call-follows-user", "calls stand right behind a user", |request| {
        let mut after_user = false;
        for (index, content) in contents(request).iter().enumerate() {
            ensure(after_user || calls(content).is_empty(), || format!("contents[{index}]"))?;
            after_user = is_users(content);
        }
        Ok(())
    }),
    rule("gemini.echo", "a response repeats id and name of its call", |request| {
        for (index, pair) in contents(request).windows(2).enumerate() {
            for (call, response) in calls(&pair[0]).into_iter().zip(responses(&pair[1])) {
                let same = call.get("id") == response.get("id") && call.get("name") == response.get("name");
                ensure(same, || format!("contents[{}]: {}", index + 1, text(response, "name")))?;
            }
        }
        Ok(())
    }),
    rule("gemini.signature", "the first call of a turn is signed", |request| {
        each(request, "contents[]", |content| {
            let first = items(content, "parts").iter().find(|part| field(part, "functionCall").is_some());
            first.is_none_or(|part| has_text(part, "thoughtSignature"))
        })
    }),
    rule("gemini.signature-place", "signatures stand beside the call", |request| {
        each(request, "contents[]", |content| {
            calls(content).iter().all(|call| call.get("thoughtSignature").is_none())
        })
    }),
    rule("gemini.objects", "arguments and responses are objects", |request| {
        each(request, "contents[]", |content| {
            calls(content).iter().all(|call| call["args"].is_object())
                && responses(content).iter().all(|response| response["response"].is_object())
        })
    }),
    rule("gemini.names", "names begin with a letter or _ and have 1 to 64 characters", |request| {
        let spoken = contents(request).iter();
        let spoken = spoken.flat_map(|content| [calls(content), responses(content)].concat());
        let begins = |name: &str| name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
        for named in spoken.chain(declarations(request)) {
            let name = text(named, "name");
            ensure(is_plain_name(name, 64) && begins(name), || format!("{name:?}"))?;
        }
        Ok(())
    }),
    rule("gemini.parts", "each part is one thing, and says something", |request| {
        each_in(request, "contents[].parts[]", |_, part| {
            let is_empty = part["text"] == "" && part.get("thoughtSignature").is_none();
            KINDS.iter().filter(|kind| field(part, kind).is_some()).count() == 1 && !is_empty
        })
    }),
    rule("gemini.media", "media has a type and an address or bytes", |request| {
        each(request, "contents[]", |content| {
            let is_typed = |media: &Value| text(media, "mimeType").contains('/');
            let is_file = |file: &&Value| is_typed(file) && text(file, "fileUri").contains("://");
            let is_bytes = |bytes: &&Value| is_typed(bytes) && has_text(bytes, "data");
            named(content, "fileData").iter().all(is_file)
                && named(content, "inlineData").iter().all(is_bytes)
        })
    }),
    rule("gemini.tools", "function names are unique, each takes an object", |request| {
        check_unique(declarations(request).into_iter().map(|tool| text(tool, "name")))?;
        for tool in declarations(request) {
            let of_object =
                tool["parametersJsonSchema"]["type"] == "object" || tool.get("parameters").is_some();
            ensure(of_object, || text(tool, "name").to_owned())?;
        }
        ensure(declarations(request).len() <= 128, || "more than 128 functions".into())
    }),
    rule("gemini.exclusive", "schemas are given in one form", |request| {
        let both =
            |value: &Value, one: &str, other: &str| value.get(one).is_some() && value.get(other).is_some();
        for tool in declarations(request) {
            ensure(!both(tool, "parameters", "parametersJsonSchema"), || text(tool, "name").to_owned())?;
        }
        let config = &request["generationConfig"];
        ensure(!both(config, "responseSchema", "responseJsonSchema"), || "generationConfig".into())?;
        let thinking = &config["thinkingConfig"];
        ensure(!both(thinking, "thinkingBudget", "thinkingLevel"), || "thinkingConfig".into())
    }),
    rule("gemini.system", "the system text is apart from the contents", |request| {
        let says = |system: &Value| items(system, "parts").iter().any(|part| has_text(part, "text"));
        ensure(request.get("systemInstruction").is_none_or(says), || "systemInstruction".into())
    }),
];

/// The possible fields of a part, of which it has exactly one.
const KINDS: [&str; 7] = [
    "text",
    "inlineData",
    "fileData",
    "functionCall",
    "functionResponse",
    "executableCode",
    "codeExecutionResult",
];

fn contents(request: &Value) -> &[Value] {
    items(request, "contents")
}

fn is_users(content: &Value) -> bool {
    text(content, "role") == "user"
}

fn named<'a>(content: &'a Value, name: &str) -> Vec<&'a Value> {
    items(content, "parts").iter().filter_map(|part| field(part, name)).collect()
}

fn calls(content: &Value) -> Vec<&Value> {
    named(content, "functionCall")
}

fn responses(content: &Value) -> Vec<&Value> {
    named(content, "functionResponse")
}

fn declarations(request: &Value) -> Vec<&Value> {
    items(request, "tools").iter().flat_map(|tool| items(tool, "functionDeclarations")).collect()
}
