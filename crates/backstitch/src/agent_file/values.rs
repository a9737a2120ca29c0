//! Values with a textual form for people: times, amounts, lists of tools.

use std::time::Duration;

use serde::{Deserialize, Serialize, Serializer};

/// A duration: a number of seconds, or a text such as `90s`, `10m` or `1h30m`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "SpanForm")]
pub struct Span(pub Duration);

impl std::str::FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || format!("{text:?} is not a duration: write 90s, 10m, 1h30m or a number of seconds");
        let mut rest = text.trim();
        if let Ok(seconds) = rest.parse() {
            return Ok(Self(Duration::from_secs(seconds)));
        }
        let mut total = Duration::ZERO;
        if rest.is_empty() {
            return Err(wrong());
        }
        while !rest.is_empty() {
            let digits = rest.find(|character: char| !character.is_ascii_digit()).ok_or_else(wrong)?;
            let (number, after) = rest.split_at(digits);
            let letters = after.find(|character: char| character.is_ascii_digit()).unwrap_or(after.len());
            let (unit, next) = after.split_at(letters);
            let number: u64 = number.parse().map_err(|_| wrong())?;
            let millis = match unit.trim() {
                "ms" => Some(number),
                "s" => number.checked_mul(1_000),
                "m" => number.checked_mul(60_000),
                "h" => number.checked_mul(3_600_000),
                "d" => number.checked_mul(86_400_000),
                _ => None,
            };
            total = total.saturating_add(Duration::from_millis(millis.ok_or_else(wrong)?));
            rest = next;
        }
        Ok(Self(total))
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let millis = self.0.as_millis();
        match millis % 1_000 {
            0 => serializer.collect_str(&format_args!("{}s", millis / 1_000)),
            _ => serializer.collect_str(&format_args!("{millis}ms")),
        }
    }
}

/// The forms of a duration in a file.
#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a duration, such as `90s`, `10m` or a number of seconds")]
enum SpanForm {
    Seconds(i64),
    Text(String),
}

impl TryFrom<SpanForm> for Span {
    type Error = String;

    fn try_from(form: SpanForm) -> Result<Self, Self::Error> {
        match form {
            SpanForm::Seconds(seconds) => {
                let seconds = u64::try_from(seconds).map_err(|_| "a duration is not negative")?;
                Ok(Self(Duration::from_secs(seconds)))
            }
            SpanForm::Text(text) => text.parse(),
        }
    }
}

/// An amount of money, in the unit of the prices.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Money(f64);

impl Money {
    /// Returns the amount in millionths.
    pub fn micros(self) -> u64 {
        (self.0 * 1e6).round() as u64
    }

    /// Creates an amount of millionths. Fails above the largest amount.
    pub(super) fn of_micros(micros: u64) -> Option<Self> {
        Self::try_from(micros as f64 / 1e6).ok()
    }
}

impl TryFrom<f64> for Money {
    type Error = &'static str;

    fn try_from(amount: f64) -> Result<Self, Self::Error> {
        if amount.is_finite() && (0.0..=1e12).contains(&amount) {
            Ok(Self(amount))
        } else {
            Err("an amount of money is a number from 0 to 1e12")
        }
    }
}

impl From<Money> for f64 {
    fn from(money: Money) -> Self {
        money.0
    }
}

/// The built-in tools that are offered.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "ToolChoiceForm")]
pub enum ToolChoice {
    /// The tools for files and the shell.
    #[default]
    All,
    /// Tools by name.
    Named(Vec<String>),
}

impl ToolChoice {
    /// Parses the form of the command line: `all`, `none`, or names separated by commas.
    pub fn of_list(text: &str) -> Self {
        match text.trim() {
            "all" => Self::All,
            "none" | "" => Self::Named(Vec::new()),
            names => Self::Named(names.split(',').map(|name| name.trim().to_owned()).collect()),
        }
    }
}

impl Serialize for ToolChoice {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::All => serializer.serialize_str("all"),
            Self::Named(names) => names.serialize(serializer),
        }
    }
}

/// The forms of a choice in a file.
#[derive(Deserialize)]
#[serde(untagged, expecting = "write \"all\", or a list of tool names")]
enum ToolChoiceForm {
    Word(String),
    Names(Vec<String>),
}

impl TryFrom<ToolChoiceForm> for ToolChoice {
    type Error = &'static str;

    fn try_from(form: ToolChoiceForm) -> Result<Self, Self::Error> {
        match form {
            ToolChoiceForm::Names(names) => Ok(Self::Named(names)),
            ToolChoiceForm::Word(word) => match word.as_str() {
                "all" | "none" => Ok(Self::of_list(&word)),
                _ => Err("write \"all\", or a list of tool names"),
            },
        }
    }
}

/// The form of a budget for thinking: `default`, `adaptive`, or a number of tokens.
pub(super) mod thinking {
    use backstitch_providers::ThinkingBudget;
    use serde::{Deserialize, Deserializer, Serialize as _, Serializer, de};

    #[derive(Deserialize)]
    #[serde(untagged, expecting = "expected \"default\", \"adaptive\" or a number of tokens")]
    enum ThinkingForm {
        Tokens(i64),
        Word(String),
    }

    pub(in super::super) fn serialize<S: Serializer>(
        budget: &ThinkingBudget,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match budget {
            ThinkingBudget::Default => "default".serialize(serializer),
            ThinkingBudget::Adaptive => "adaptive".serialize(serializer),
            ThinkingBudget::Budget(tokens) => tokens.serialize(serializer),
        }
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<ThinkingBudget, D::Error> {
        match ThinkingForm::deserialize(deserializer)? {
            ThinkingForm::Tokens(tokens) => u32::try_from(tokens)
                .map(ThinkingBudget::Budget)
                .map_err(|_| de::Error::custom(format_args!("a number of tokens is 0 to {}", u32::MAX))),
            ThinkingForm::Word(word) => match word.as_str() {
                "default" => Ok(ThinkingBudget::Default),
                "adaptive" => Ok(ThinkingBudget::Adaptive),
                other => Err(de::Error::unknown_variant(other, &["default", "adaptive"])),
            },
        }
    }
}

/// Whether a value is the default, which is not recorded.
pub(super) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// The default of options that are on.
pub(super) fn yes() -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_parsed_and_rendered() {
        let seconds = |text: &str| text.parse::<Span>().map(|span| span.0.as_secs());
        assert_eq!(seconds("90"), Ok(90));
        assert_eq!(seconds("1h30m"), Ok(5_400));
        assert_eq!(seconds("2d 1s"), Ok(172_801));
        for wrong in ["", "m", "10x", "-1s", "1.5h", "10m5"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
        for text in ["\"1500ms\"", "\"60s\""] {
            let span: Span = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&span).unwrap(), text);
        }
    }
}
