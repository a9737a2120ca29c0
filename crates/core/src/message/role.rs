//! Role hints of messages for language models.
//!
//! A [`RoleHint`] helps an adapter to choose among a provider's roles. It is only a hint: the meaning of a
//! message follows from its `policy` and its kind, and no rule of this project depends on the hint.

use crate::text_form::words;

words! {
    /// The role in which a message is best shown to a model.
    RoleHint = "role hint" {
        /// A message of a person.
        User = "user",
        /// A message or a call of the model.
        Assistant = "assistant",
        /// A result of an option.
        Tool = "tool",
        /// Instructions for the model.
        System = "system",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_hint_is_its_word() {
        for hint in RoleHint::ALL {
            assert_eq!(RoleHint::of_word(hint.as_str()), Some(hint));
            let text = serde_json::to_string(&hint).unwrap();
            assert_eq!(text, format!("\"{hint}\""));
            assert_eq!(serde_json::from_str::<RoleHint>(&text).unwrap(), hint);
        }
    }

    #[test]
    fn other_words_and_other_forms_are_refused() {
        let error = serde_json::from_str::<RoleHint>(r#""developer""#).unwrap_err().to_string();
        let problem = r#"unknown role hint "developer"; it is one of user, assistant, tool, system"#;
        assert!(error.starts_with(problem), "{error}");
        for json in [r#""User""#, r#""""#, r#"{"user":null}"#, "0", "null", r#"["user"]"#] {
            assert!(serde_json::from_str::<RoleHint>(json).is_err(), "{json}");
        }
    }
}
