//! Predicates and classes of values.

use super::{NEXT, NOT};
use crate::error::Result;
use crate::library::{Arity, Native, type_error};
use crate::value::{Temporal, Value, Zone, number};

macro_rules! predicates {
    ($($name:literal => $pattern:pat $(if $guard:expr)?,)*) => {
        &[$(Native::leaf($name, Arity::exactly(1), NOT, |_, a| Ok(matches!(&a[0], $pattern $(if $guard)?).into())),)*]
    };
}

pub(crate) const NATIVES: &[Native] = predicates! {
    "nil?" => Value::Nil,
    "some?" => value if !value.is_nil(),
    "any?" => _,
    "true?" => Value::Boolean(true),
    "false?" => Value::Boolean(false),
    "boolean?" => Value::Boolean(_),
    "number?" => value if number::is_number(value),
    "integer?" => Value::Integer(_) | Value::BigInteger(_),
    "int?" => Value::Integer(_),
    "pos-int?" => Value::Integer(1..),
    "neg-int?" => Value::Integer(..0),
    "nat-int?" => Value::Integer(0..),
    "float?" => Value::Float(_),
    "double?" => Value::Float(_),
    "ratio?" => Value::Ratio(_),
    "rational?" => Value::Integer(_) | Value::BigInteger(_) | Value::Ratio(_),
    "decimal?" => value if { let _ = value; false },
    "string?" => Value::String(_),
    "char?" => Value::Character(_),
    "keyword?" => Value::Keyword(_),
    "simple-keyword?" => Value::Keyword(name) if name.namespace().is_none(),
    "qualified-keyword?" => Value::Keyword(name) if name.namespace().is_some(),
    "symbol?" => Value::Symbol(_),
    "simple-symbol?" => Value::Symbol(name) if name.namespace().is_none(),
    "qualified-symbol?" => Value::Symbol(name) if name.namespace().is_some(),
    "ident?" => Value::Symbol(_) | Value::Keyword(_),
    "vector?" => Value::Vector(vector) if !vector.is_queue(),
    "map-entry?" => Value::Vector(vector) if vector.is_entry(),
    "list?" => Value::List(list) if list.is_proper(),
    "map?" => Value::Map(_),
    "set?" => Value::Set(_),
    "record?" => value if { let _ = value; false },
    "seq?" => Value::List(_) | Value::Sequence(_) | Value::Lazy(_),
    "sequential?" => Value::List(_) | Value::Sequence(_) | Value::Lazy(_) | Value::Vector(_),
    "coll?" => Value::List(_) | Value::Sequence(_) | Value::Lazy(_) | Value::Vector(_) | Value::Map(_) | Value::Set(_),
    "associative?" => value if matches!(value, Value::Map(_)) || is_plain_vector(value),
    "indexed?" => value if is_plain_vector(value),
    "reversible?" => value if is_plain_vector(value),
    "counted?" => value if is_counted(value),
    "seqable?" => Value::Nil | Value::String(_) | Value::List(_) | Value::Sequence(_) | Value::Lazy(_) | Value::Vector(_) | Value::Map(_) | Value::Set(_),
    "fn?" => Value::Closure(_) | Value::Native(_) | Value::Tool(_),
    "ifn?" => value if is_callable(value),
    "atom?" => Value::Atom(atom) if !atom.is_delay(),
    "var?" => Value::Var(_),
    "volatile?" => Value::Atom(atom) if !atom.is_delay(),
    "reduced?" => Value::Reduced(_),
    "bytes?" => value if { let _ = value; false },
    "exception?" => Value::Exception(_),
    "regex?" => Value::Regex(_),
    "inst?" => Value::Temporal(temporal) if matches!(**temporal, Temporal::Instant(_) | Temporal::Date(_)),
    "uuid?" => Value::Temporal(temporal) if matches!(**temporal, Temporal::Uuid(_)),
};

fn is_callable(value: &Value) -> bool {
    matches!(
        value,
        Value::Closure(_)
            | Value::Native(_)
            | Value::Tool(_)
            | Value::Keyword(_)
            | Value::Symbol(_)
            | Value::Map(_)
            | Value::Set(_)
            | Value::Vector(_)
            | Value::Var(_)
    )
}

fn is_plain_vector(value: &Value) -> bool {
    matches!(value, Value::Vector(vector) if !vector.is_queue())
}

fn is_counted(value: &Value) -> bool {
    match value {
        Value::Vector(_) | Value::Map(_) | Value::Set(_) => true,
        Value::List(list) => list.is_proper(),
        Value::Sequence(sequence) => sequence.count().is_some(),
        _ => false,
    }
}

pub(crate) const MORE: &[Native] = &[
    Native::leaf("empty?", Arity::exactly(1), NEXT, |c, a| match super::sequences::is_empty(&a[0]) {
        Some(empty) => Ok(empty.into()),
        None => Err(c.type_error("a collection", &a[0])),
    }),
    Native::binary("instance?", |_, a| instance(&a[0], &a[1])),
    Native::unary("type", |_, a| Ok(class(&a[0]))),
    Native::unary("class", |_, a| Ok(class(&a[0]))),
];

/// Returns the class of a value, as a symbol with the name that the class has in Clojure.
fn class(value: &Value) -> Value {
    Value::symbol(match value {
        Value::Nil => return Value::Nil,
        Value::Boolean(_) => "java.lang.Boolean",
        Value::Integer(_) => "java.lang.Long",
        Value::Float(_) => "java.lang.Double",
        Value::BigInteger(_) => "clojure.lang.BigInt",
        Value::Ratio(_) => "clojure.lang.Ratio",
        Value::Character(_) => "java.lang.Character",
        Value::String(_) => "java.lang.String",
        Value::Keyword(_) => "clojure.lang.Keyword",
        Value::Symbol(_) => "clojure.lang.Symbol",
        Value::List(list) if list.is_empty() => "clojure.lang.PersistentList$EmptyList",
        Value::List(_) => "clojure.lang.PersistentList",
        Value::Sequence(_) | Value::Lazy(_) => "clojure.lang.LazySeq",
        Value::Vector(vector) if vector.is_entry() => "clojure.lang.MapEntry",
        Value::Vector(vector) if vector.is_queue() => "clojure.lang.PersistentQueue",
        Value::Vector(_) => "clojure.lang.PersistentVector",
        Value::Map(map) if map.comparator().is_some() => "clojure.lang.PersistentTreeMap",
        Value::Map(map) if map.len() <= 8 => "clojure.lang.PersistentArrayMap",
        Value::Map(_) => "clojure.lang.PersistentHashMap",
        Value::Set(set) if set.comparator().is_some() => "clojure.lang.PersistentTreeSet",
        Value::Set(_) => "clojure.lang.PersistentHashSet",
        Value::Closure(_) | Value::Native(_) | Value::Tool(_) => "clojure.lang.IFn",
        Value::Var(_) => "clojure.lang.Var",
        Value::Atom(atom) if atom.is_delay() => "clojure.lang.Delay",
        Value::Atom(_) => "clojure.lang.Atom",
        Value::Regex(_) => "java.util.regex.Pattern",
        Value::Exception(exception) => exception.class(),
        Value::Reduced(_) => "clojure.lang.Reduced",
        Value::Temporal(temporal) => match &**temporal {
            Temporal::LocalDate(_) => "java.time.LocalDate",
            Temporal::Instant(_) => "java.time.Instant",
            Temporal::Duration(_) => "java.time.Duration",
            Temporal::Date(_) => "java.util.Date",
            Temporal::Uuid(_) => "java.util.UUID",
            Temporal::LocalDateTime(_) => "java.time.LocalDateTime",
            Temporal::DayOfWeek(_) => "java.time.DayOfWeek",
            Temporal::Month(_) => "java.time.Month",
            Temporal::Unit(_) => "java.time.temporal.ChronoUnit",
            Temporal::Formatter(_) => "java.time.format.DateTimeFormatter",
            Temporal::OffsetDateTime(..) => "java.time.OffsetDateTime",
            Temporal::ZonedDateTime(..) => "java.time.ZonedDateTime",
            Temporal::Zone(Zone::Offset(_)) => "java.time.ZoneOffset",
            Temporal::Zone(Zone::Utc(_)) => "java.time.ZoneRegion",
            Temporal::Period(_) => "java.time.Period",
            Temporal::LocalTime(_) => "java.time.LocalTime",
            Temporal::YearMonth(_) => "java.time.YearMonth",
        },
    })
}

fn instance(wanted: &Value, value: &Value) -> Result<Value> {
    let Value::Symbol(name) = wanted else { return Err(type_error("instance?", "a class", wanted)) };
    let wanted = name.full().rsplit('.').next().unwrap_or_default();
    if let Value::Exception(_) = value {
        return Ok(crate::machine::is_instance(value, name.full()).into());
    }
    let holds = match wanted {
        "Object" => !value.is_nil(),
        "Number" => number::is_number(value),
        "Integer" => false,
        "IFn" => is_callable(value),
        "Fn" => matches!(value, Value::Closure(_) | Value::Native(_) | Value::Tool(_)),
        "IPersistentMap" | "Map" | "APersistentMap" => matches!(value, Value::Map(_)),
        "PersistentArrayMap" | "PersistentHashMap" => matches!(value, Value::Map(_)),
        "IPersistentVector" | "APersistentVector" => matches!(value, Value::Vector(_)),
        "IPersistentSet" | "Set" => matches!(value, Value::Set(_)),
        "ISeq" => matches!(value, Value::List(_) | Value::Sequence(_) | Value::Lazy(_)),
        "IPersistentList" => matches!(value, Value::List(_)),
        "Sequential" | "List" => {
            matches!(value, Value::Vector(_) | Value::List(_) | Value::Sequence(_) | Value::Lazy(_))
        }
        "IPersistentCollection" | "Collection" | "Iterable" => {
            value.shape().depth() > 0 && !matches!(value, Value::Closure(_))
        }
        "CharSequence" | "Comparable" if matches!(value, Value::String(_)) => true,
        "ZoneId" => matches!(value, Value::Temporal(temporal) if matches!(**temporal, Temporal::Zone(_))),
        "Named" => matches!(value, Value::Keyword(_) | Value::Symbol(_)),
        wanted => match class(value) {
            Value::Symbol(own) => own.full().rsplit('.').next() == Some(wanted),
            _ => false,
        },
    };
    Ok(holds.into())
}

/// Class names that may be used as values, for `instance?`.
pub(crate) const CLASSES: &[&str] = &[
    "Boolean",
    "Long",
    "Integer",
    "Double",
    "Float",
    "Number",
    "Character",
    "String",
    "Object",
    "Exception",
    "RuntimeException",
    "Throwable",
    "ArithmeticException",
    "IllegalArgumentException",
    "ExceptionInfo",
    "Keyword",
    "Symbol",
    "Ratio",
    "BigInt",
    "LazySeq",
    "PersistentVector",
    "PersistentList",
    "PersistentArrayMap",
    "PersistentHashMap",
    "PersistentHashSet",
    "IFn",
    "Fn",
    "Delay",
    "IPersistentMap",
    "IPersistentVector",
    "IPersistentSet",
    "IPersistentCollection",
    "ISeq",
    "Sequential",
    "Atom",
    "Pattern",
    "LocalDate",
    "LocalDateTime",
    "LocalTime",
    "OffsetDateTime",
    "ZonedDateTime",
    "ZoneOffset",
    "ZoneId",
    "Period",
    "YearMonth",
    "DayOfWeek",
    "Month",
    "ChronoUnit",
    "DateTimeFormatter",
    "Instant",
    "Duration",
    "Date",
    "UUID",
    "CharSequence",
    "Map",
    "List",
    "Set",
    "Collection",
    "MapEntry",
    "Named",
    "IPersistentList",
    "Comparable",
];
