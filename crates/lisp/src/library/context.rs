//! The context of a library function: the limits, the meter, the time and a random source.

use crate::effort;
use crate::error::{Error, ErrorKind, Result};
use crate::limits::Limits;
use crate::machine::{Meter, Random};
use crate::value::{Value, number};

/// The context of a call. It gives no access to the evaluator.
pub(crate) struct CallContext<'a> {
    /// The name of the function that is called.
    pub(crate) name: &'static str,
    pub(crate) limits: &'a Limits,
    pub(crate) meter: &'a mut Meter,
    pub(crate) random: &'a mut Random,
    /// The start time of the program, in milliseconds since 1970. It does not change while a program runs.
    pub(crate) now: i64,
    /// True if allocations are only noted, because a frame cannot be re-entered.
    pub(crate) only_notes: bool,
}

impl CallContext<'_> {
    /// Returns the name of the function in messages, which leave out the namespace of string functions.
    pub(crate) fn shown(&self) -> &'static str {
        self.name.strip_prefix("clojure.string/").unwrap_or(self.name)
    }

    /// Charges fuel for work that grows with its input: one unit for each item or for each 64 bytes or so.
    pub(crate) fn work(&mut self, units: usize) -> Result<()> {
        self.meter.work(units as u64)
    }

    /// Accounts for memory that is about to be allocated. Call it before allocating and before taking an
    /// argument: the machine may count live memory and enter the function again.
    pub(crate) fn allocate(&mut self, bytes: usize) -> Result<()> {
        // A large allocation is also filled.
        effort::touch_bytes(bytes / 4);
        if self.only_notes {
            self.meter.note(bytes);
            return Ok(());
        }
        self.meter.allocate(bytes)
    }

    /// Checks the length of a collection, charges fuel for each item and accounts for 16 bytes of each.
    pub(crate) fn collection(&mut self, length: usize) -> Result<()> {
        self.limits.check_collection(length)?;
        self.work(length)?;
        self.allocate(64 + 16 * length)
    }

    /// Checks the length in bytes of a string that is about to be built, charges fuel and accounts for its
    /// memory.
    pub(crate) fn text(&mut self, bytes: usize) -> Result<()> {
        self.limits.check_string(bytes)?;
        self.work(bytes / 64)?;
        self.allocate(64 + bytes)
    }

    /// Creates a string value, checked and accounted for. If the text may become long, call
    /// [`CallContext::text`] before building it.
    pub(crate) fn string(&mut self, text: impl Into<Box<str>>) -> Result<Value> {
        let text = text.into();
        self.text(text.len())?;
        Ok(Value::string(text))
    }

    /// Creates a vector of these items, checked and accounted for.
    pub(crate) fn vector(&mut self, items: Vec<Value>) -> Result<Value> {
        self.collection(items.len())?;
        Ok(Value::vector(items))
    }

    /// Creates a realised sequence of these items, checked and accounted for: the empty list if there are
    /// none.
    pub(crate) fn sequence(&mut self, items: Vec<Value>) -> Result<Value> {
        self.collection(items.len())?;
        Ok(crate::value::Sequence::realised(items))
    }

    /// Checks the size of a number and accounts for it.
    pub(crate) fn number(&mut self, value: Value) -> Result<Value> {
        let bits = number::bits(&value);
        if bits > 0 {
            self.limits.check_number(bits)?;
            let words = bits / 64 + 1;
            self.meter.work(words / 8)?;
            self.allocate(64 + words as usize * 8)?;
        }
        Ok(value)
    }

    /// The error for an argument of a type that the function does not take: `subs: expected a string, got
    /// nil`.
    #[cold]
    pub(crate) fn type_error(&self, expected: &str, got: &Value) -> Error {
        type_error(self.name, expected, got)
    }
}

/// The error for an argument of a type that the function does not take: `subs: expected a string, got nil`.
#[cold]
pub(crate) fn type_error(function: &str, expected: &str, got: &Value) -> Error {
    Error::new(ErrorKind::Type, format!("{function}: expected {expected}, got {}", got.type_name()))
}

/// The error for an argument that is not a sequence. The usual mistake is the order of the arguments.
#[cold]
pub(crate) fn not_a_sequence(function: &str, got: &Value) -> Error {
    let error = type_error(function, "a sequence", got);
    match got {
        Value::Closure(_) | Value::Native(_) | Value::Tool(_) | Value::Keyword(_) if takes_function(function) => {
            error.hint(format!(
                "the function comes first and the collection last: `({function} f coll)`; thread collections with `->>`, not with `->`"
            ))
        }
        Value::Keyword(_) if function.ends_with("-in") => error.hint("the path is a vector: `[:a :b]`"),
        Value::Integer(_) | Value::Float(_) => error.hint("a number has no items; `(range n)` counts up to it"),
        _ => error,
    }
}

/// Whether a function takes another one before its collection.
fn takes_function(name: &str) -> bool {
    const NAMES: &[&str] = &[
        "map",
        "mapv",
        "filter",
        "filterv",
        "remove",
        "reduce",
        "keep",
        "mapcat",
        "map-indexed",
        "sort-by",
        "sort",
        "group-by",
        "some",
        "every?",
        "not-any?",
        "not-every?",
        "take-while",
        "drop-while",
        "run!",
        "drop",
        "take",
        "concat",
        "pmap",
        "reduce-kv",
        "frequencies",
    ];
    NAMES.contains(&name)
}
