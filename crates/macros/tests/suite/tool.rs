//! Tools in odd places: among names that generated code must not pick up, inside of functions, with another module.

use backstitch::tool::Tool;

/// The names of the prelude may be shadowed at the place of the tool.
mod shadowed {
    #![allow(dead_code, reason = "names that must not be picked up by the generated code")]

    pub(crate) struct Result;
    pub(crate) struct Option;
    pub(crate) struct Tool;
    pub(crate) struct Vec;
    pub(crate) struct Value;
    pub(crate) struct ToolArguments;

    mod renamed {
        pub(super) use backstitch::__private as elsewhere;
    }

    /// Is among them.
    #[backstitch::tool(crate = renamed::elsewhere, effect = "pure", example(description = "One", arguments = { "a": -1 }, result = -1))]
    pub(super) fn among_them(a: i64, r#type: String, #[arg(default = 7)] b: u8) -> i64 {
        a + i64::from(b) + r#type.len() as i64
    }
}

/// Calls itself.
#[backstitch::tool(effect = "pure")]
fn factorial(#[arg(name = "n")] number: u64) -> u64 {
    if number < 2 { 1 } else { number * factorial(number - 1) }
}

fn inside() -> Tool {
    struct Hidden(u32);

    /** Uses what is beside it.

    Several lines. */
    #[backstitch::tool(effect = "pure")]
    async fn beside(number: u32) -> u32 {
        Hidden(number).0
    }
    beside()
}

#[test]
fn tools_can_stand_anywhere() {
    let tool = shadowed::among_them();
    let properties: Vec<_> = tool.spec.parameters["properties"].as_object().unwrap().keys().collect();
    assert_eq!(properties, ["a", "type", "b"]);
    assert!(inside().spec.description.starts_with("Uses what is beside it.\n\n"));
    assert_eq!(factorial().name().as_str(), "factorial");
}
