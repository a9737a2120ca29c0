//! The names of the library, and the spellings under which a program may use them.

use std::collections::HashMap;

use crate::value::Value;

/// Every name of the library and what it means.
#[derive(Default)]
pub(crate) struct Builtins {
    values: HashMap<Box<str>, Value>,
}

/// Namespaces a program may write, and the one they stand for. The empty one is `clojure.core`.
const NAMESPACES: &[(&str, &str)] = &[
    ("clojure.core", ""),
    ("core", ""),
    ("cljs.core", ""),
    ("clojure.string", "clojure.string"),
    ("str", "clojure.string"),
    ("string", "clojure.string"),
    ("clojure.set", "clojure.set"),
    ("set", "clojure.set"),
    ("clojure.walk", "clojure.walk"),
    ("walk", "clojure.walk"),
    ("clojure.math", "clojure.math"),
    ("math", "clojure.math"),
    ("clojure.edn", "clojure.edn"),
    ("edn", "clojure.edn"),
    ("clojure.pprint", "clojure.pprint"),
    ("pprint", "clojure.pprint"),
    ("json", "json"),
    ("clojure.data.json", "json"),
    ("cheshire.core", "json"),
];

/// Java packages that may be written before a class or left out.
const PACKAGES: &[&str] =
    &["java.lang.", "java.util.", "java.time.", "java.time.temporal.", "clojure.lang.", "java.math."];

impl Builtins {
    pub(crate) fn define(&mut self, name: &str, value: Value) {
        self.values.insert(name.into(), value);
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Value> {
        self.values.get(name)
    }

    /// What a name without a namespace means.
    pub(crate) fn bare(&self, name: &str) -> Option<&Value> {
        self.get(name).or_else(|| without_package(name).and_then(|short| self.get(short)))
    }

    /// What `namespace/name` means.
    pub(crate) fn qualified(&self, namespace: &str, name: &str) -> Option<&Value> {
        match canonical_namespace(namespace) {
            Some("") => self.get(name),
            Some(namespace) => self.get(&format!("{namespace}/{name}")),
            None => {
                let class = without_package(namespace).unwrap_or(namespace);
                self.get(&format!("{class}/{name}"))
            }
        }
    }

    /// Whether anything has a name in this namespace or class.
    pub(crate) fn knows_namespace(&self, namespace: &str) -> bool {
        if canonical_namespace(namespace).is_some() {
            return true;
        }
        let prefix = format!("{}/", without_package(namespace).unwrap_or(namespace));
        self.values.keys().any(|name| name.starts_with(&prefix))
    }

    /// Every name that a program may write.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.values.keys().map(|name| &**name).filter(|name| !is_internal(name))
    }
}

/// The namespace in which forms that are made of other forms find what is internal. No program can write it.
pub(crate) const INTERNAL: &str = ":internal";

/// Whether a name is that of a part which the library keeps for itself.
pub(crate) fn is_internal(name: &str) -> bool {
    name.len() > 2 && name.ends_with('*') && name != "list*"
}

/// The namespace that this one is another spelling of.
pub(crate) fn canonical_namespace(namespace: &str) -> Option<&'static str> {
    NAMESPACES.iter().find(|(spelling, _)| *spelling == namespace).map(|(_, canonical)| *canonical)
}

fn without_package(name: &str) -> Option<&str> {
    PACKAGES.iter().find_map(|package| name.strip_prefix(package)).filter(|rest| !rest.is_empty())
}
