//! Schemas of values that are texts in JSON.

/// Describes a type as a text of one form, such as `"format": "uuid"`.
macro_rules! text_schema {
    ($name:ident, $key:literal: $value:literal) => {
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

pub(crate) use text_schema;
