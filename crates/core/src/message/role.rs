//! What a message might be to a language model.
//!
//! A [`RoleHint`] helps an adapter to choose among a provider's roles. It is a hint and nothing more: no rule of this
//! project looks at it to decide what a message means; `policy` and the kind of the message say that.

use super::word::words;

words! {
    /// The role that a message would best be shown to a model as.
    RoleHint = "role hint" {
        /// What a person said.
        User = "user",
        /// What the model said or chose.
        Assistant = "assistant",
        /// What an option gave back.
        Tool = "tool",
        /// What the model is told about its task.
        System = "system",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_hint_is_its_word() {
        for hint in RoleHint::ALL {
            assert_eq!(hint.as_str().parse::<RoleHint>().unwrap(), *hint);
            let text = serde_json::to_string(hint).unwrap();
            assert_eq!(text, format!("\"{hint}\""));
            assert_eq!(serde_json::from_str::<RoleHint>(&text).unwrap(), *hint);
        }
    }

    #[test]
    fn other_words_and_other_forms_are_refused() {
        let error = "developer".parse::<RoleHint>().unwrap_err();
        assert_eq!(
            error.to_string(),
            r#"unknown role hint "developer"; it is one of user, assistant, tool, system"#
        );
        for json in [r#""User""#, r#""""#, r#"{"user":null}"#, "0", "null", r#"["user"]"#] {
            assert!(serde_json::from_str::<RoleHint>(json).is_err(), "{json}");
        }
    }
}
