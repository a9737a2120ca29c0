//! Values with a textual form for people: times, amounts, lists of tools.

use std::fmt;
use std::time::Duration;

use serde::de::{self, Deserializer, SeqAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};

/// A duration: a number of seconds, or a text such as `90s`, `10m` or `1h30m`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Times;
        impl Visitor<'_> for Times {
            type Value = Span;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a duration, such as `90s`, `10m` or a number of seconds")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Span, E> {
                text.parse().map_err(E::custom)
            }

            fn visit_u64<E: de::Error>(self, seconds: u64) -> Result<Span, E> {
                Ok(Span(Duration::from_secs(seconds)))
            }

            fn visit_i64<E: de::Error>(self, seconds: i64) -> Result<Span, E> {
                let seconds = u64::try_from(seconds);
                seconds.map_err(|_| E::custom("a duration is not negative")).and_then(|s| self.visit_u64(s))
            }
        }
        deserializer.deserialize_any(Times)
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
}

impl Money {
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
#[derive(Debug, Clone, Default, PartialEq, Eq)]
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

impl<'de> Deserialize<'de> for ToolChoice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Names;
        impl<'de> Visitor<'de> for Names {
            type Value = ToolChoice;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a list of tool names, or \"all\"")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<ToolChoice, E> {
                match text {
                    "all" | "none" => Ok(ToolChoice::of_list(text)),
                    _ => Err(E::custom("write \"all\", or a list of tool names")),
                }
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut names: A) -> Result<ToolChoice, A::Error> {
                let mut all = Vec::new();
                while let Some(name) = names.next_element()? {
                    all.push(name);
                }
                Ok(ToolChoice::Named(all))
            }
        }
        deserializer.deserialize_any(Names)
    }
}

/// Amount of thinking that is requested: `default`, `adaptive`, or a number of tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ThinkingSetting {
    /// The provider's default.
    #[default]
    Default,
    /// The model decides.
    Adaptive,
    /// A maximum number of tokens.
    Tokens(u32),
}

impl ThinkingSetting {
    pub(super) fn is_default(&self) -> bool {
        *self == Self::Default
    }
}

impl Serialize for ThinkingSetting {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Default => serializer.serialize_str("default"),
            Self::Adaptive => serializer.serialize_str("adaptive"),
            Self::Tokens(tokens) => serializer.serialize_u32(*tokens),
        }
    }
}

impl<'de> Deserialize<'de> for ThinkingSetting {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Words;
        impl Visitor<'_> for Words {
            type Value = ThinkingSetting;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("\"default\", \"adaptive\" or a number of tokens")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<ThinkingSetting, E> {
                match text {
                    "default" => Ok(ThinkingSetting::Default),
                    "adaptive" => Ok(ThinkingSetting::Adaptive),
                    other => Err(E::unknown_variant(other, &["default", "adaptive"])),
                }
            }

            fn visit_u64<E: de::Error>(self, tokens: u64) -> Result<ThinkingSetting, E> {
                u32::try_from(tokens)
                    .map(ThinkingSetting::Tokens)
                    .map_err(|_| E::custom("a number of tokens is at most 4294967295"))
            }

            fn visit_i64<E: de::Error>(self, tokens: i64) -> Result<ThinkingSetting, E> {
                let tokens = u64::try_from(tokens);
                tokens
                    .map_err(|_| E::custom("a number of tokens is not negative"))
                    .and_then(|t| self.visit_u64(t))
            }
        }
        deserializer.deserialize_any(Words)
    }
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
