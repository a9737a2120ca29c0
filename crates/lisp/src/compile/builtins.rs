//! The names of the library, and the spellings that a program may use for them.

use std::collections::HashMap;

use crate::value::Value;

/// All names of the library with their values.
#[derive(Default)]
pub(crate) struct Builtins {
    values: HashMap<Box<str>, Value>,
}

/// Namespaces that a program may write, and their canonical names. The empty one is `clojure.core`.
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

/// Java packages that a program may write before a class, or leave out.
const PACKAGES: &[&str] = &[
    "java.lang.",
    "java.util.",
    "java.time.temporal.",
    "java.time.format.",
    "java.time.",
    "clojure.lang.",
    "java.math.",
];

impl Builtins {
    pub(crate) fn define(&mut self, name: &str, value: Value) {
        self.values.insert(name.into(), value);
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Value> {
        self.values.get(name)
    }

    /// Looks up a name without a namespace.
    pub(crate) fn bare(&self, name: &str) -> Option<&Value> {
        self.get(name).or_else(|| without_package(name).and_then(|short| self.get(short)))
    }

    /// Looks up `namespace/name`.
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

    /// Returns whether any name is in this namespace or class.
    pub(crate) fn knows_namespace(&self, namespace: &str) -> bool {
        if canonical_namespace(namespace).is_some() {
            return true;
        }
        let prefix = format!("{}/", without_package(namespace).unwrap_or(namespace));
        self.values.keys().any(|name| name.starts_with(&prefix))
    }

    /// Returns the namespaces and classes that names may be written with, each as its usual prefix.
    pub(crate) fn namespaces(&self) -> Vec<String> {
        let mut prefixes: Vec<String> = self
            .names()
            .filter_map(|name| name.split_once('/'))
            .filter(|(namespace, name)| !namespace.is_empty() && !name.is_empty())
            .map(|(namespace, _)| format!("{}/", usual_prefix(namespace)))
            .chain(["tool/".to_owned(), "data/".to_owned(), "user/".to_owned()])
            .collect();
        prefixes.sort_unstable();
        prefixes.dedup();
        prefixes
    }

    /// Returns the ways to write a name, quoted: without a namespace, and in each one that has it.
    pub(crate) fn written_as(&self, name: &str) -> Vec<String> {
        let of = |known: &str| match known.split_once('/') {
            Some((namespace, short)) if short == name && !namespace.is_empty() => {
                Some(format!("`{}/{short}`", usual_prefix(namespace)))
            }
            _ => (known == name).then(|| format!("`{known}`")),
        };
        self.names().filter_map(of).collect()
    }

    /// Returns every name that a program may write.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.values.keys().map(|name| &**name).filter(|name| !is_internal(name))
    }
}

/// The prefix with which programs usually write the names of a namespace.
fn usual_prefix(namespace: &str) -> &str {
    match namespace {
        "clojure.string" => "str",
        namespace => namespace.trim_start_matches("clojure."),
    }
}

/// The namespace of internal names, for expansions. No program can write it.
pub(crate) const INTERNAL: &str = ":internal";

/// Returns whether a name is internal to the library.
pub(crate) fn is_internal(name: &str) -> bool {
    name.len() > 2 && name.ends_with('*') && name != "list*"
}

/// Returns the canonical name of a namespace.
pub(crate) fn canonical_namespace(namespace: &str) -> Option<&'static str> {
    NAMESPACES.iter().find(|(spelling, _)| *spelling == namespace).map(|(_, canonical)| *canonical)
}

/// Returns the name of a class without its package, if it has a known one.
pub(crate) fn without_package(name: &str) -> Option<&str> {
    PACKAGES.iter().find_map(|package| name.strip_prefix(package)).filter(|rest| !rest.is_empty())
}
