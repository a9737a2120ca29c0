//! Macros for types that are stored as text: ids, times, digests, and enums of words.

use std::fmt;

use serde::de::{self, Deserializer, Visitor};

/// Implements `Debug` by `Display`, and `JsonSchema` as a text of this pattern or format.
macro_rules! shown_as_text {
    ($name:ident, $key:literal: $value:literal) => {
        impl std::fmt::Debug for $name {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Display::fmt(self, formatter)
            }
        }

        impl schemars::JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({"type": "string", $key: $value})
            }
        }
    };
}
pub(crate) use shown_as_text;

/// Implements `Serialize` by `Display`, and `Deserialize` by `FromStr` or by another function.
macro_rules! stored_as_text {
    ($name:ident, $expected:literal) => {
        $crate::text_form::stored_as_text!($name, $expected, str::parse);
    };
    ($name:ident, $expected:literal, $parse:expr) => {
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                $crate::text_form::read(deserializer, $expected, $parse)
            }
        }
    };
}
pub(crate) use stored_as_text;

/// Implements `FromStr` by `new`, and `AsRef<str>`, `Display` and `Debug` by `as_str`.
macro_rules! checked_text {
    ($name:ident, $error:ty) => {
        impl std::str::FromStr for $name {
            type Err = $error;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Self::new(text)
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                self.as_str()
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str(self.as_str())
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Debug::fmt(self.as_str(), formatter)
            }
        }
    };
}
pub(crate) use checked_text;

/// Defines an enum whose variants are words: in JSON, in messages to people and when they are parsed.
macro_rules! words {
    (
        $(#[$meta:meta])*
        $name:ident = $what:literal {
            $($(#[$variant_meta:meta])* $variant:ident = $word:literal,)*
        }
    ) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, schemars::JsonSchema)]
        $(#[$meta])*
        pub enum $name {
            $($(#[$variant_meta])* #[schemars(rename = $word)] $variant,)*
        }

        impl $name {
            /// All of them, in the order of declaration.
            pub const ALL: [Self; [$($word),*].len()] = [$(Self::$variant),*];

            /// The word, as it is stored and shown.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)*
                }
            }

            /// Returns the variant of a word.
            pub fn of_word(word: &str) -> Option<Self> {
                match word {
                    $($word => Some(Self::$variant),)*
                    _ => None,
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.pad(self.as_str())
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                $crate::text_form::read(deserializer, "a string", |word| {
                    let unknown = || $crate::text_form::unknown_word($what, word, &[$($word),*]);
                    Self::of_word(word).ok_or_else(unknown)
                })
            }
        }
    };
}
pub(crate) use words;

/// Reads a text and parses it, without a copy of the text.
pub(crate) fn read<'de, T, P: fmt::Display, D: Deserializer<'de>>(
    deserializer: D,
    expected: &'static str,
    parse: fn(&str) -> Result<T, P>,
) -> Result<T, D::Error> {
    struct Text<T, P> {
        expected: &'static str,
        parse: fn(&str) -> Result<T, P>,
    }

    impl<T, P: fmt::Display> Visitor<'_> for Text<T, P> {
        type Value = T;

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str(self.expected)
        }

        fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
            (self.parse)(text).map_err(E::custom)
        }
    }

    deserializer.deserialize_str(Text { expected, parse })
}

/// Says that a word is not one of those that are known.
pub(crate) fn unknown_word(what: &str, word: &str, known: &[&str]) -> String {
    let word: String = word.chars().take(64).collect();
    format!("unknown {what} {word:?}; it is one of {}", known.join(", "))
}
