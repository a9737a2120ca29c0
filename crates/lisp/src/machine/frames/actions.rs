//! Functions that act on the machine: atoms, printing, exceptions, the end of the program, random
//! numbers.

use std::sync::Arc;

use super::super::work::{Host, Signal, Step, Work};
use super::apply::apply;
use super::{prelude, take, take_first};
use crate::error::{Error, ErrorKind, Result};
use crate::library::{Arity, Effects, Native, Realise, Run, items, print_all, type_error};
use crate::printer::Style;
use crate::value::{AtomRef, Value};

const DEEP: &[Realise] = &[Realise::Deep];
const KEY: &[Realise] = &[Realise::Not, Realise::Deep];

pub(crate) const NATIVES: &[Native] = &[
    Native::calling("apply", Arity::at_least(2), apply),
    Native::acting("atom", Arity::at_least(1), |host, a| {
        let validator = |pair: &[Value]| matches!(pair, [Value::Keyword(name), check] if name.full() == "validator" && *check != Value::Nil);
        if a[1..].chunks(2).any(validator) {
            return Err(Error::new(ErrorKind::Unsupported, "atom: there are no validators")
                .hint("check the new value in the function that you pass to `swap!`, and `(throw (ex-info ...))` there"));
        }
        atom(host, a)
    }),
    Native::acting("volatile!", Arity::exactly(1), atom),
    Native::acting("deref", Arity::exactly(1), deref),
    Native::acting("reset!", Arity::exactly(2), |host, a| {
        let [target, value] = take(a);
        let atom = changeable(host, "reset!", &target)?;
        let old = value_of(host, &atom);
        set(host, &atom, value.clone());
        notify_watches(host, &atom, old, value.clone(), value)
    }),
    Native::frame("add-watch", Arity::exactly(3), KEY, Effects::Acts, |host, a| {
        let [target, key, watch] = take(a);
        let atom = changeable(host, "add-watch", &target)?;
        host.shared.meter.note(160);
        host.shared.watches.entry(atom.number()).or_default().insert(key, watch);
        Ok(Step::Return(target))
    }),
    Native::frame("remove-watch", Arity::exactly(2), KEY, Effects::Acts, |host, a| {
        let [target, key] = take(a);
        let atom = changeable(host, "remove-watch", &target)?;
        if let Some(watches) = host.shared.watches.get_mut(&atom.number()) {
            watches.remove(&key);
        }
        Ok(Step::Return(target))
    }),
    Native::acting("swap!", Arity::at_least(2), |host, a| swap(host, a, Answer::New)),
    Native::acting("swap-vals!", Arity::at_least(2), |host, a| swap(host, a, Answer::Both)),
    Native::frame("print", Arity::at_least(0), DEEP, Effects::Acts, |h, a| print(h, a, Style::Raw, false)),
    Native::frame("println", Arity::at_least(0), DEEP, Effects::Acts, |h, a| print(h, a, Style::Raw, true)),
    Native::frame("pr", Arity::at_least(0), DEEP, Effects::Acts, |h, a| print(h, a, Style::Readable, false)),
    Native::frame("prn", Arity::at_least(0), DEEP, Effects::Acts, |h, a| print(h, a, Style::Readable, true)),
    Native::acting("newline", Arity::exactly(0), |h, a| print(h, a, Style::Raw, true)),
    Native::acting("with-out-str*", Arity::exactly(1), |host, a| {
        host.strand.prints.begin_capture();
        Ok(Step::Push(Box::new(WithOutStr { function: take_first(a) })))
    }),
    Native::acting("flush", Arity::exactly(0), |_, _| Ok(Step::Return(Value::Nil))),
    Native::calling("throw", Arity::exactly(1), |_, a| Ok(Step::Throw(take_first(a)))),
    Native::frame("return", Arity::between(0, 1), DEEP, Effects::Acts, |h, a| end(h, a, Signal::Return)),
    Native::frame("fail", Arity::between(0, 1), DEEP, Effects::Acts, |h, a| end(h, a, Signal::Fail)),
    Native::frame("reduced", Arity::exactly(1), &[], Effects::Pure, |_, a| {
        Ok(Step::Return(Value::Reduced(Arc::new(take_first(a)))))
    }),
    Native::acting("rand", Arity::between(0, 1), |host, a| {
        let most = match a.first() {
            Some(value) => {
                crate::value::number::to_f64(value).ok_or_else(|| type_error("rand", "a number", value))?
            }
            None => 1.0,
        };
        check_allowed(host, "rand")?;
        Ok(Step::Return(Value::Float(host.strand.random.unit() * most)))
    }),
    Native::acting("rand-int", Arity::exactly(1), |host, a| {
        let most = crate::library::integer("rand-int", &a[0])?;
        check_allowed(host, "rand-int")?;
        let drawn = host.strand.random.below(most.unsigned_abs()) as i64;
        Ok(Step::Return(Value::Integer(if most < 0 { -drawn } else { drawn })))
    }),
    Native::acting("random-uuid", Arity::exactly(0), |host, _| {
        check_allowed(host, "random-uuid")?;
        let random = &mut host.strand.random;
        let bits = u128::from(random.below(u64::MAX)) << 64 | u128::from(random.below(u64::MAX));
        Ok(Step::Return(crate::library::random_uuid(bits)))
    }),
    Native::frame("shuffle", Arity::exactly(1), &[Realise::Spine], Effects::Acts, |host, a| {
        check_allowed(host, "shuffle")?;
        let mut context = super::super::execute::frame_context("shuffle", host);
        let mut items = items(&mut context, "shuffle", &a[0])?;
        for at in (1..items.len()).rev() {
            items.swap(at, host.strand.random.below(at as u64 + 1) as usize);
        }
        Ok(Step::Return(Value::vector(items)))
    }),
];

/// Refuses effects while a branch realises a sequence that was created outside of it.
fn check_allowed(host: &Host<'_>, name: &str) -> Result<()> {
    if host.strand.foreign > 0 {
        let message = format!("{name}: a lazy sequence from outside of pmap has effects inside of it");
        return Err(Error::new(ErrorKind::ForbiddenEffect, message)
            .hint("realise the sequence before pmap: use `mapv` or `doall`"));
    }
    Ok(())
}

fn atom(host: &mut Host<'_>, arguments: Vec<Value>) -> Result<Step> {
    Ok(Step::Return(create_atom(host, take_first(arguments))))
}

/// Creates an atom with this value.
pub(super) fn create_atom(host: &mut Host<'_>, value: Value) -> Value {
    let number = host.strand.stamp().0;
    let atom = AtomRef::new(number);
    atom.note_cell(&value);
    host.shared.meter.note(160);
    host.shared.memory.atoms.insert(number, (atom.clone(), value));
    host.shared.touched.push(number);
    if host.strand.is_branch() {
        host.strand.own_atoms.push(number);
    }
    Value::Atom(atom)
}

fn deref(host: &mut Host<'_>, arguments: Vec<Value>) -> Result<Step> {
    if let Some(step) = super::delay::force(host, &arguments[0])? {
        return Ok(step);
    }
    let value = match &arguments[0] {
        Value::Atom(atom) => match host.shared.memory.atoms.get(&atom.number()) {
            Some((_, value)) => value.clone(),
            None => return Err(Error::argument("deref: the atom does not exist any more")),
        },
        Value::Var(name) => host.shared.global_named(name.full())?,
        Value::Reduced(value) => (**value).clone(),
        other => return Err(type_error("deref", "an atom", other)),
    };
    Ok(Step::Return(value))
}

/// Returns an atom that may be changed here: in a branch, only one that was created in it.
pub(super) fn changeable(host: &Host<'_>, name: &str, value: &Value) -> Result<AtomRef> {
    check_allowed(host, name)?;
    let Value::Atom(atom) = value else { return Err(type_error(name, "an atom", value)) };
    if atom.is_delay() && name != "force" {
        return Err(type_error(name, "an atom", value).hint("a delay has one value: `(force d)` or `@d`"));
    }
    if host.strand.is_branch() && !host.strand.own_atoms.contains(&atom.number()) {
        let message = format!("{name}: an atom from outside cannot be changed inside pmap or pcalls");
        return Err(Error::new(ErrorKind::ForbiddenEffect, message)
            .hint("return the values from pmap and combine them afterwards"));
    }
    Ok(atom.clone())
}

pub(super) fn set(host: &mut Host<'_>, atom: &AtomRef, value: Value) {
    host.shared.memory.atoms.insert(atom.number(), (atom.clone(), value));
    if host.shared.touched.last() != Some(&atom.number()) {
        host.shared.touched.push(atom.number());
    }
}

/// Returns the value of an atom.
fn value_of(host: &Host<'_>, atom: &AtomRef) -> Value {
    host.shared.memory.atoms.get(&atom.number()).map(|(_, value)| value.clone()).unwrap_or_default()
}

/// Returns the answer after the watches of the atom have been called with its old and its new value.
fn notify_watches(
    host: &mut Host<'_>,
    atom: &AtomRef,
    old: Value,
    new: Value,
    answer: Value,
) -> Result<Step> {
    match host.shared.watches.get(&atom.number()) {
        Some(watches) if !watches.is_empty() => {
            let watches = Value::Map(watches.clone());
            prelude(host.shared, "watch*", vec![watches, Value::Atom(atom.clone()), old, new, answer])
        }
        _ => Ok(Step::Return(answer)),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Answer {
    New,
    Both,
}

fn swap(host: &mut Host<'_>, arguments: Vec<Value>, answer: Answer) -> Result<Step> {
    let mut a = arguments.into_iter();
    let target = a.next().unwrap_or_default();
    let atom = changeable(host, "swap!", &target)?;
    let function = a.next().unwrap_or_default();
    if answer == Answer::New
        && let Some(result) = swap_in_place(host, &atom, &function, a.as_slice())
    {
        return result.map(Step::Return);
    }
    Ok(Step::Push(Box::new(Swap { atom, function, arguments: a.collect(), old: None, answer })))
}

/// Changes the value of an atom in place, with a function that leaves its arguments alone if it fails and
/// that cannot read the atom. `None` for any other function.
fn swap_in_place(
    host: &mut Host<'_>,
    atom: &AtomRef,
    function: &Value,
    more: &[Value],
) -> Option<Result<Value>> {
    let Value::Native(native) = function else { return None };
    let Run::Taking(run) = native.run else { return None };
    if !native.arity.accepts(more.len() + 1) || more.iter().any(Value::may_hold_lazy) {
        return None;
    }
    // A result that is nested too deeply would be refused only after the value has changed, so it is ruled
    // out first.
    if more.iter().any(|value| value.depth() + 2 > host.shared.limits.deepest()) {
        return None;
    }
    if host.shared.watches.contains_key(&atom.number()) {
        return None;
    }
    let cell = &mut host.shared.memory.atoms.get_mut(&atom.number())?.1;
    if cell.may_hold_lazy() || native.replacement(std::slice::from_ref(cell)).is_some() {
        return None;
    }
    let mut arguments = vec![std::mem::take(cell)];
    arguments.extend_from_slice(more);
    let weight: u64 = more.iter().map(|value| value.shape().weight() / 8).sum();
    let result = match host.shared.meter.work(weight) {
        Ok(()) => run(&mut super::super::execute::frame_context(native.name, host), &mut arguments),
        Err(error) => Err(error),
    };
    Some(match result.and_then(|value| host.shared.limits.check_depth(value.depth()).map(|()| value)) {
        Ok(value) => {
            set(host, atom, value.clone());
            Ok(value)
        }
        Err(error) => {
            // The function failed before it took anything: restore the value.
            let old = std::mem::take(&mut arguments[0]);
            set(host, atom, old);
            Err(error)
        }
    })
}

struct Swap {
    atom: AtomRef,
    function: Value,
    arguments: Vec<Value>,
    old: Option<Value>,
    answer: Answer,
}

impl Work for Swap {
    fn step(&mut self, host: &mut Host<'_>, incoming: Option<Value>) -> Result<Step> {
        let Some(new) = incoming else {
            let old = value_of(host, &self.atom);
            // A copy would keep the function from changing a collection in place.
            if self.answer == Answer::Both || host.shared.watches.contains_key(&self.atom.number()) {
                self.old = Some(old.clone());
            }
            let arguments = std::iter::once(old).chain(std::mem::take(&mut self.arguments)).collect();
            return Ok(Step::Call(self.function.clone(), arguments));
        };
        set(host, &self.atom, new.clone());
        let old = self.old.take().unwrap_or_default();
        let answer = match self.answer {
            Answer::New => new.clone(),
            Answer::Both => Value::vector(vec![old.clone(), new.clone()]),
        };
        notify_watches(host, &self.atom, old, new, answer)
    }

    fn each(&self, visit: &mut dyn FnMut(&Value)) {
        visit(&self.function);
        self.arguments.iter().for_each(&mut *visit);
        if let Some(old) = &self.old {
            visit(old);
        }
    }
}

/// Prints values. `ends` closes the line.
fn print(host: &mut Host<'_>, arguments: Vec<Value>, style: Style, ends: bool) -> Result<Step> {
    check_allowed(host, "println")?;
    let shared = &mut *host.shared;
    let mut text = print_all(&arguments, style, shared.limits.string_bytes)?;
    if let Some(captured) = host.strand.prints.capture() {
        shared.limits.check_string(captured.len() + text.len() + 1)?;
        shared.meter.note(text.len() + 1);
        captured.push_str(&text);
        if ends {
            captured.push('\n');
        }
        return Ok(Step::Return(Value::Nil));
    }
    // Only the beginning of a long text is kept.
    if let Some((cut, _)) = text.char_indices().nth(shared.limits.print_characters_per_call) {
        text.truncate(cut);
        text.push_str("...");
    }
    shared.meter.note(text.len() + 32);
    host.strand.prints.add(&text, ends, &shared.limits);
    Ok(Step::Return(Value::Nil))
}

/// Calls a function and returns what it prints.
struct WithOutStr {
    function: Value,
}

impl Work for WithOutStr {
    fn step(&mut self, host: &mut Host<'_>, incoming: Option<Value>) -> Result<Step> {
        Ok(match incoming {
            None => Step::Call(self.function.clone(), Vec::new()),
            Some(_) => Step::Return(Value::string(host.strand.prints.end_capture())),
        })
    }

    fn captures_prints(&self) -> bool {
        true
    }

    fn each(&self, visit: &mut dyn FnMut(&Value)) {
        visit(&self.function);
    }
}

fn end(host: &mut Host<'_>, arguments: Vec<Value>, signal: Signal) -> Result<Step> {
    if host.strand.is_branch() {
        let message = "return and fail are not allowed inside pmap or pcalls";
        return Err(Error::new(ErrorKind::ForbiddenEffect, message)
            .hint("return from the branch by giving its value"));
    }
    Ok(Step::End(signal, take_first(arguments)))
}
