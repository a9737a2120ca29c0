//! The functions of `clojure.core` on numbers, collections and sequences that are written in Rust.

pub(super) mod arithmetic;
pub(super) mod changes;
pub(super) mod collections;
pub(super) mod comparison;
pub(super) mod exceptions;
pub(super) mod lookups;
pub(super) mod predicates;
pub(super) mod sequences;
pub(super) mod sorted;
mod sorting;
pub(super) mod unchecked;

use crate::library::Realise;

const NOT: &[Realise] = &[];
const NEXT: &[Realise] = &[Realise::Next];
const SPINE: &[Realise] = &[Realise::Spine];
const DEEP: &[Realise] = &[Realise::Deep];
