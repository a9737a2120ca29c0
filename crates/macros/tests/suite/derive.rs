//! The code that `#[derive(Slice)]` generates.

use backstitch::Slice;
use backstitch::session::{SlicePolicy, UpcastError};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

#[derive(Serialize, Deserialize, Slice)]
#[slice(name = "finding")]
struct Finding {
    text: String,
}

#[derive(Serialize, Deserialize, Slice)]
#[slice(name = "acme/event.v-2_x", policy = "log")]
#[slice(version = 3, upcast = upcasters::event)]
enum Happened {
    Opened,
    Closed { reason: String },
}

/// The names of the prelude may be shadowed at the place of the derive.
mod shadowed {
    #![allow(dead_code, reason = "names that must not be picked up by the generated code")]

    use serde::{Deserialize, Serialize};

    struct Result;
    struct Value;
    struct SlicePolicy;

    mod renamed {
        pub(super) use backstitch::__private as elsewhere;
    }

    #[derive(Serialize, Deserialize, backstitch::Slice)]
    #[slice(name = "0", policy = "journal", crate = renamed::elsewhere)]
    pub(super) struct Shadowed(u8);
}

mod upcasters {
    use super::*;

    pub(super) fn event(version: u32, item: Value) -> Result<Value, UpcastError> {
        match (version, item) {
            (1, Value::String(_)) => Ok(json!("opened")),
            (2, Value::String(_)) => Ok(json!("Opened")),
            (version, item) => Err(UpcastError::new(format!("{item} of version {version}"))),
        }
    }
}

#[test]
fn what_is_absent_has_the_defaults_of_the_trait() {
    assert_eq!((Finding::NAME, Finding::VERSION, Finding::POLICY), ("finding", 1, SlicePolicy::State));
    assert!(Finding::upcast(0, json!({})).is_err());
    assert_eq!(Finding { text: "seam".into() }.text, "seam");
}

#[test]
fn options_may_stand_in_several_attributes() {
    assert_eq!(
        (Happened::NAME, Happened::VERSION, Happened::POLICY),
        ("acme/event.v-2_x", 3, SlicePolicy::Log)
    );
    let older = Happened::upcast(1, json!("open")).and_then(|item| Happened::upcast(2, item)).unwrap();
    assert!(matches!(serde_json::from_value(older).unwrap(), Happened::Opened));
    assert_eq!(Happened::upcast(2, json!(7)).unwrap_err().to_string(), "7 of version 2");
    let closed = json!({"Closed": {"reason": "done"}});
    assert!(
        matches!(serde_json::from_value(closed).unwrap(), Happened::Closed { reason } if reason == "done")
    );
}

#[test]
fn another_module_can_stand_for_the_private_one() {
    use shadowed::Shadowed;
    assert_eq!((Shadowed::NAME, Shadowed::POLICY), ("0", SlicePolicy::Journal));
}
