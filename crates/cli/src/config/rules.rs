//! Lasting rules about approvals: `[rules]` in the user's configuration, never in a project's.
//!
//! Unlike the other settings they are not recorded with a session. They apply to every session that this user
//! drives, also to one that is resumed.

use backstitch::agent_file::Problem;
use backstitch::approval::{ApprovalRule, ApprovalRules, ApprovalScope, ApprovalVerdict};

use super::layer::Config;
use super::settings::RuleTexts;

impl RuleTexts {
    fn all(&self) -> impl Iterator<Item = (ApprovalVerdict, &String)> {
        let allow = self.allow.iter().map(|text| (ApprovalVerdict::Allow, text));
        let ask = self.ask.iter().map(|text| (ApprovalVerdict::Ask, text));
        allow.chain(ask).chain(self.deny.iter().map(|text| (ApprovalVerdict::Deny, text)))
    }

    /// Refuses rules that cannot be read, and those that would allow everything.
    pub(super) fn check(&self) -> Result<(), Problem> {
        for (verdict, text) in self.all() {
            let key = ["rules", verdict.as_str()];
            let scope: ApprovalScope = text.parse().map_err(|error| Problem::new(key, error))?;
            if verdict == ApprovalVerdict::Allow && scope.is_launcher() {
                let message = format!("`{scope}` runs whatever follows, so it cannot be allowed");
                return Err(Problem::new(key, message));
            }
        }
        Ok(())
    }
}

impl Config {
    /// Returns the lasting rules of the user.
    pub(crate) fn approval_rules(&self) -> ApprovalRules {
        let texts = self.layers().flat_map(|layer| layer.settings.rules.all());
        // They were checked when the file was read.
        texts.filter_map(|(verdict, text)| Some(ApprovalRule::new(verdict, text.parse().ok()?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_that_cannot_be_read_or_allow_everything_are_refused() {
        let one = |text: &str| vec![text.to_owned()];
        let sound =
            RuleTexts { allow: one("shell git status"), ask: one("write_file"), deny: one("shell sudo") };
        assert!(sound.check().is_ok());
        for wrong in [
            RuleTexts { allow: one("shell git; id"), ..RuleTexts::default() },
            RuleTexts { allow: one("shell sh"), ..RuleTexts::default() },
            RuleTexts { deny: one(""), ..RuleTexts::default() },
            RuleTexts { ask: one("a.b"), ..RuleTexts::default() },
        ] {
            assert!(wrong.check().is_err(), "{wrong:?}");
        }
    }
}
