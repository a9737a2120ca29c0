//! The requests that Gemini refuses.

use serde_json::Value;

use crate::rules::{Rule, ensure, is_plain_name, items, repeated, text};

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "gemini.contents",
        what: "there are contents of users and models, none empty",
        check: contents,
    },
    Rule { id: "gemini.asks", what: "the last content is of a user", check: asks },
    Rule { id: "gemini.begins", what: "the first content is of a user", check: begins },
    Rule { id: "gemini.answered", what: "as many responses as calls follow at once", check: check_answered },
    Rule {
        id: "gemini.response-has-call",
        what: "responses stand right behind their calls",
        check: response_has_call,
    },
    Rule {
        id: "gemini.call-follows-user",
        what: "calls stand right behind a user",
        check: call_follows_user,
    },
    Rule { id: "gemini.echo", what: "a response repeats id and name of its call", check: echo },
    Rule { id: "gemini.signature", what: "the first call of a turn is signed", check: signature },
    Rule { id: "gemini.signature-place", what: "signatures stand beside the call", check: signature_place },
    Rule { id: "gemini.objects", what: "arguments and responses are objects", check: objects },
    Rule {
        id: "gemini.names",
        what: "names begin with a letter or _ and have 1 to 64 characters",
        check: names,
    },
    Rule { id: "gemini.parts", what: "each part is one thing, and says something", check: parts },
    Rule { id: "gemini.media", what: "media has a type and an address or bytes", check: media },
    Rule { id: "gemini.tools", what: "function names are unique, each takes an object", check: tools },
    Rule { id: "gemini.exclusive", what: "schemas are given in one form", check: exclusive },
    Rule { id: "gemini.system", what: "the system text is apart from the contents", check: system },
];

fn contents_of(request: &Value) -> &[Value] {
    items(request, "contents")
}

fn named<'a>(content: &'a Value, name: &str) -> Vec<&'a Value> {
    items(content, "parts").iter().filter_map(|part| part.get(name)).collect()
}

fn calls(content: &Value) -> Vec<&Value> {
    named(content, "functionCall")
}

fn responses(content: &Value) -> Vec<&Value> {
    named(content, "functionResponse")
}

fn contents(request: &Value) -> Result<(), String> {
    ensure(!contents_of(request).is_empty(), || "contents".into())?;
    for (index, content) in contents_of(request).iter().enumerate() {
        let is_known = matches!(text(content, "role"), "user" | "model");
        ensure(is_known && !items(content, "parts").is_empty(), || format!("contents[{index}]"))?;
    }
    Ok(())
}

fn asks(request: &Value) -> Result<(), String> {
    let last = contents_of(request).last();
    ensure(last.is_some_and(|last| text(last, "role") == "user"), || "the last content".into())
}

fn begins(request: &Value) -> Result<(), String> {
    let first = contents_of(request).first();
    ensure(first.is_some_and(|first| text(first, "role") == "user"), || "contents[0]".into())
}

fn check_answered(request: &Value) -> Result<(), String> {
    let all = contents_of(request);
    for (index, content) in all.iter().enumerate() {
        let made = calls(content).len();
        let given = all.get(index + 1).map_or(0, |next| responses(next).len());
        ensure(made == 0 || made == given, || format!("contents[{index}]: {made} calls, {given} responses"))?;
        ensure(made == 0 || text(content, "role") == "model", || format!("contents[{index}].role"))?;
    }
    Ok(())
}

fn response_has_call(request: &Value) -> Result<(), String> {
    let mut made = 0;
    for (index, content) in contents_of(request).iter().enumerate() {
        let given = responses(content).len();
        let is_user = text(content, "role") == "user";
        ensure(given == 0 || (made == given && is_user), || format!("contents[{index}]"))?;
        made = calls(content).len();
    }
    Ok(())
}

fn call_follows_user(request: &Value) -> Result<(), String> {
    for (index, content) in contents_of(request).iter().enumerate() {
        if !calls(content).is_empty() {
            let before = index.checked_sub(1).map(|before| text(&contents_of(request)[before], "role"));
            ensure(before == Some("user"), || format!("contents[{index}]"))?;
        }
    }
    Ok(())
}

fn echo(request: &Value) -> Result<(), String> {
    for (index, pair) in contents_of(request).windows(2).enumerate() {
        let [made, given] = pair else { continue };
        for (call, response) in calls(made).into_iter().zip(responses(given)) {
            let same = call.get("id") == response.get("id") && call.get("name") == response.get("name");
            ensure(same, || format!("contents[{}]: {}", index + 1, text(response, "name")))?;
        }
    }
    Ok(())
}

fn signature(request: &Value) -> Result<(), String> {
    for (index, content) in contents_of(request).iter().enumerate() {
        let first = items(content, "parts").iter().find(|part| part.get("functionCall").is_some());
        let is_signed = first.is_none_or(|part| !text(part, "thoughtSignature").is_empty());
        ensure(is_signed, || format!("contents[{index}]"))?;
    }
    Ok(())
}

fn signature_place(request: &Value) -> Result<(), String> {
    for (index, content) in contents_of(request).iter().enumerate() {
        let inside = calls(content).iter().any(|call| call.get("thoughtSignature").is_some());
        ensure(!inside, || format!("contents[{index}]"))?;
    }
    Ok(())
}

fn objects(request: &Value) -> Result<(), String> {
    for (index, content) in contents_of(request).iter().enumerate() {
        let holds = calls(content).iter().all(|call| call["args"].is_object())
            && responses(content).iter().all(|response| response["response"].is_object());
        ensure(holds, || format!("contents[{index}]"))?;
    }
    Ok(())
}

fn declarations(request: &Value) -> Vec<&Value> {
    items(request, "tools").iter().flat_map(|tool| items(tool, "functionDeclarations")).collect()
}

fn names(request: &Value) -> Result<(), String> {
    let spoken = contents_of(request).iter().flat_map(|content| {
        let mut all = calls(content);
        all.extend(responses(content));
        all
    });
    let begins = |name: &str| name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    for named in spoken.chain(declarations(request)) {
        let name = text(named, "name");
        ensure(is_plain_name(name, 64) && begins(name), || format!("{name:?}"))?;
    }
    Ok(())
}

fn parts(request: &Value) -> Result<(), String> {
    const KINDS: [&str; 7] = [
        "text",
        "inlineData",
        "fileData",
        "functionCall",
        "functionResponse",
        "executableCode",
        "codeExecutionResult",
    ];
    for (index, content) in contents_of(request).iter().enumerate() {
        for (at, part) in items(content, "parts").iter().enumerate() {
            let kinds = KINDS.iter().filter(|kind| part.get(**kind).is_some()).count();
            let is_empty = part["text"] == "" && part.get("thoughtSignature").is_none();
            ensure(kinds == 1 && !is_empty, || format!("contents[{index}].parts[{at}]"))?;
        }
    }
    Ok(())
}

fn media(request: &Value) -> Result<(), String> {
    for (index, content) in contents_of(request).iter().enumerate() {
        let by_address = named(content, "fileData");
        let by_bytes = named(content, "inlineData");
        let holds = by_address
            .iter()
            .all(|file| text(file, "mimeType").contains('/') && text(file, "fileUri").contains("://"))
            && by_bytes
                .iter()
                .all(|bytes| text(bytes, "mimeType").contains('/') && !text(bytes, "data").is_empty());
        ensure(holds, || format!("contents[{index}]"))?;
    }
    Ok(())
}

fn tools(request: &Value) -> Result<(), String> {
    let twice = repeated(declarations(request).into_iter().map(|tool| text(tool, "name")));
    ensure(twice.is_none(), || format!("{twice:?} occurs twice"))?;
    for tool in declarations(request) {
        let of_object = tool["parametersJsonSchema"]["type"] == "object" || tool.get("parameters").is_some();
        ensure(of_object, || text(tool, "name").to_owned())?;
    }
    ensure(declarations(request).len() <= 128, || "more than 128 functions".into())
}

fn exclusive(request: &Value) -> Result<(), String> {
    let both = |value: &Value, one: &str, other: &str| value.get(one).is_some() && value.get(other).is_some();
    for tool in declarations(request) {
        ensure(!both(tool, "parameters", "parametersJsonSchema"), || text(tool, "name").to_owned())?;
    }
    let config = &request["generationConfig"];
    ensure(!both(config, "responseSchema", "responseJsonSchema"), || "generationConfig".into())?;
    let thinking = &config["thinkingConfig"];
    ensure(!both(thinking, "thinkingBudget", "thinkingLevel"), || "thinkingConfig".into())
}

fn system(request: &Value) -> Result<(), String> {
    let instruction = request.get("systemInstruction");
    let holds = instruction.is_none_or(|instruction| {
        items(instruction, "parts").iter().any(|part| !text(part, "text").is_empty())
    });
    ensure(holds, || "systemInstruction".into())
}
