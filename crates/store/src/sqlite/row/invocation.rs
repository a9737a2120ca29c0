//! Log items about calls in rows.
//!
//! An item of the log `tool_invoked` repeats the result of a call. Where it directly follows the message of that result, its
//! row holds only what the message does not say: the adapter and the arguments, and the fields that are other than expected. So
//! the row can be read only together with the record before it.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

const BEGINNING: &str = r#"{"slice":"tool_invoked","version":1,"policy":"log","op":{"append":{"call_id":"#;

/// Number of characters of a result that a log item shows.
const SHOWN: usize = 1_000;

/// What a row holds.
#[derive(Serialize, Deserialize)]
struct Remainder<'a> {
    #[serde(borrow)]
    adapter: &'a RawValue,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    params: Option<&'a RawValue>,
    /// The prompt's name, unless it is namespace and key.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    prompt_name: Option<&'a RawValue>,
    /// The time of the item, unless it is that of the message.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    created_at: Option<&'a RawValue>,
    #[serde(default, skip_serializing_if = "Output::is_result")]
    output: Output,
}

/// Where the text that the item shows comes from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Output {
    /// The result as JSON.
    #[default]
    Result,
    /// The result, which is a string.
    Text,
    /// The field `message` of the result.
    Message,
    /// The message of the error.
    Error,
}

impl Output {
    const ALL: [Self; 4] = [Self::Result, Self::Text, Self::Message, Self::Error];

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
    fn is_result(&self) -> bool {
        *self == Self::Result
    }
}

/// Fields of a whole item that a remainder may need.
#[derive(Deserialize)]
struct Item<'a> {
    #[serde(borrow)]
    prompt_name: &'a RawValue,
    #[serde(borrow)]
    adapter: &'a RawValue,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
    #[serde(borrow)]
    rendered_output: &'a RawValue,
    #[serde(borrow)]
    created_at: &'a RawValue,
}

#[derive(Deserialize)]
struct Change<'a> {
    #[serde(borrow)]
    op: Append<'a>,
}

#[derive(Deserialize)]
struct Append<'a> {
    #[serde(borrow)]
    append: Item<'a>,
}

/// The record of a result, as far as an item repeats it.
#[derive(Deserialize)]
struct ResultRecord<'a> {
    #[serde(borrow)]
    data: ResultData<'a>,
}

#[derive(Deserialize)]
struct ResultData<'a> {
    #[serde(borrow)]
    evaluation_id: &'a RawValue,
    #[serde(borrow)]
    prompt_ns: Cow<'a, str>,
    #[serde(borrow)]
    prompt_key: Cow<'a, str>,
    #[serde(borrow)]
    created_at: &'a RawValue,
    #[serde(borrow)]
    message: ResultMessage<'a>,
}

#[derive(Deserialize)]
struct ResultMessage<'a> {
    #[serde(borrow)]
    content: ResultContent<'a>,
}

#[derive(Deserialize)]
struct ResultContent<'a> {
    #[serde(borrow)]
    invocation_id: &'a RawValue,
    #[serde(borrow)]
    option_name: &'a RawValue,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
    is_error: bool,
    #[serde(borrow, default)]
    error_message: Option<Cow<'a, str>>,
}

impl<'a> ResultData<'a> {
    fn of(text: &'a str) -> Option<Self> {
        text.starts_with(r#"{"v":1,"kind":"message_appended","#).then_some(())?;
        serde_json::from_str::<ResultRecord<'a>>(text).ok().map(|record| record.data)
    }

    fn prompt_name(&self) -> Option<String> {
        serde_json::to_string(&format!("{}/{}", self.prompt_ns, self.prompt_key)).ok()
    }

    /// What an item shows of the result, as a JSON string.
    fn shown(&self, output: Output) -> Option<String> {
        #[derive(Deserialize)]
        struct WithMessage<'a> {
            #[serde(borrow)]
            message: Cow<'a, str>,
        }
        let content = &self.message.content;
        let text = match output {
            Output::Result => Cow::Borrowed(content.result?.get()),
            Output::Text => Cow::Owned(serde_json::from_str::<String>(content.result?.get()).ok()?),
            Output::Message => serde_json::from_str::<WithMessage<'_>>(content.result?.get()).ok()?.message,
            Output::Error => Cow::Borrowed(content.error_message.as_deref()?),
        };
        let shown = match text.char_indices().nth(SHOWN) {
            None => text,
            Some(_) => Cow::Owned(text.chars().take(SHOWN - 1).chain(['…']).collect()),
        };
        serde_json::to_string(&shown).ok()
    }

    /// The data of a log item about this result.
    fn item(&self, kept: &Remainder<'_>, prompt_name: &str, shown: &str, session: &str) -> String {
        let content = &self.message.content;
        let fields = [
            BEGINNING,
            content.invocation_id.get(),
            r#","prompt_name":"#,
            prompt_name,
            r#","adapter":"#,
            kept.adapter.get(),
            r#","name":"#,
            content.option_name.get(),
            if kept.params.is_some() { r#","params":"# } else { "" },
            kept.params.map_or("", RawValue::get),
            r#","success":"#,
            if content.is_error { "false" } else { "true" },
            r#","rendered_output":"#,
            shown,
            r#","run":{"session_id":""#,
            session,
            r#"","evaluation_id":"#,
            self.evaluation_id.get(),
            r#","attempt":1},"created_at":"#,
            kept.created_at.unwrap_or(self.created_at).get(),
            "}}}",
        ];
        fields.concat()
    }
}

pub(super) fn reduce(data: &str, session: &str, before: &str) -> Option<String> {
    data.starts_with(BEGINNING).then_some(())?;
    let result = ResultData::of(before)?;
    let item = serde_json::from_str::<Change<'_>>(data).ok()?.op.append;
    let shown = item.rendered_output.get();
    let is_shown = |output: &Output| result.shown(*output).as_deref() == Some(shown);
    let output = Output::ALL.into_iter().find(is_shown)?;
    let usual_name = result.prompt_name()?;
    let remainder = Remainder {
        adapter: item.adapter,
        params: item.params,
        prompt_name: Some(item.prompt_name).filter(|name| name.get() != usual_name),
        created_at: Some(item.created_at).filter(|time| time.get() != result.created_at.get()),
        output,
    };
    // The values of a remainder are read as they were written, so what is restored from them is known already. Only one that is
    // null would be read as missing.
    if [remainder.prompt_name, remainder.created_at].iter().flatten().any(|value| value.get() == "null") {
        return None;
    }
    let is_restored = result.item(&remainder, item.prompt_name.get(), shown, session) == data;
    is_restored.then(|| serde_json::to_string(&remainder).ok()).flatten()
}

pub(super) fn restore(remainder: &str, session: &str, before: &str) -> Option<String> {
    let result = ResultData::of(before)?;
    let kept: Remainder<'_> = serde_json::from_str(remainder).ok()?;
    let prompt_name = match kept.prompt_name {
        Some(name) => Cow::Borrowed(name.get()),
        None => Cow::Owned(result.prompt_name()?),
    };
    Some(result.item(&kept, &prompt_name, &result.shown(kept.output)?, session))
}
