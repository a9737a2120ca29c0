//! `reduce` and similar loops: `mapv`, `filterv`, `reduce-kv`, `group-by`.

use super::super::natives::call_in_place;
use super::super::work::{Host, Step, Work};
use super::{cursor, take};
use crate::error::Result;
use crate::library::{Arity, Native, Realise};
use crate::value::{Cursor, CursorStep, Map, Value};

pub(crate) const NATIVES: &[Native] = &[
    Native::calling("reduce", Arity::between(2, 3), |_, a| {
        let with_initial = a.len() == 3;
        let [function, second, third] = take(a);
        let (total, source) = if with_initial { (Some(second), third) } else { (None, second) };
        let source = cursor("reduce", &source)?;
        Ok(Step::Push(Box::new(Reduce { function, total, source, empty: !with_initial })))
    }),
    Native::calling("reduce-kv", Arity::exactly(3), |_, a| {
        let [function, total, source] = take(a);
        let source = match source {
            Value::Vector(items) => {
                let entries = items.iter().enumerate().map(|(index, item)| {
                    Value::Vector(crate::value::Vector::entry(Value::Integer(index as i64), item.clone()))
                });
                Cursor::Items(crate::value::Vector::from(entries.collect::<Vec<_>>()), 0, Value::Nil)
            }
            source @ (Value::Map(_) | Value::Nil) => cursor("reduce-kv", &source)?,
            other => return Err(crate::library::type_error("reduce-kv", "a map or a vector", &other)),
        };
        Ok(Step::Push(Box::new(ReduceEntries { function, total, source })))
    }),
    Native::calling("mapv*", Arity::exactly(2), |_, a| collect("mapv", a, Keep::Result)),
    Native::calling("filterv*", Arity::exactly(2), |_, a| collect("filterv", a, Keep::Item)),
    Native::calling("run!*", Arity::exactly(2), |_, a| collect("run!", a, Keep::Nothing)),
    Native::calling("doseq*", Arity::exactly(2), |_, a| collect("doseq", a, Keep::Nothing)),
    Native::calling("group-by", Arity::exactly(2), |_, a| {
        let [function, source] = take(a);
        let (source, current, groups) = (cursor("group-by", &source)?, Value::Nil, Map::new());
        Ok(Step::Push(Box::new(Group { function, source, current, key: None, groups })))
    }),
];

struct Reduce {
    function: Value,
    total: Option<Value>,
    source: Cursor,
    /// True until the first item if there is no initial value: an empty source calls the function.
    empty: bool,
}

impl Work for Reduce {
    fn step(&mut self, host: &mut Host<'_>, incoming: Option<Value>) -> Result<Step> {
        match incoming {
            Some(Value::Reduced(value)) => return Ok(Step::Return((*value).clone())),
            Some(value) => self.total = Some(value),
            None => {}
        }
        loop {
            if host.shared.meter.is_pressed() {
                return Ok(Step::Pause);
            }
            let item = match self.source.next() {
                CursorStep::Item(item) => item,
                CursorStep::Blocked(cell) => return Ok(Step::Realise(cell)),
                CursorStep::End => {
                    return Ok(match self.total.take() {
                        Some(total) => Step::Return(total),
                        None => Step::Become(self.function.clone(), Vec::new()),
                    });
                }
            };
            if std::mem::replace(&mut self.empty, false) {
                self.total = Some(item);
                continue;
            }
            let pair = [self.total.take().unwrap_or_default(), item];
            if let Some(result) = call_in_place(&self.function, &pair, host) {
                match result? {
                    Value::Reduced(value) => return Ok(Step::Return((*value).clone())),
                    value => self.total = Some(value),
                }
                host.shared.meter.work(1)?;
                continue;
            }
            host.begin_call();
            host.stack.extend(pair);
            return Ok(Step::Repeat(2));
        }
    }

    #[inline]
    fn again(&mut self, host: &mut Host<'_>, result: &mut Value, wanted: usize) -> bool {
        if wanted != 2 || matches!(result, Value::Reduced(_)) || !host.shared.meter.has_fuel(1) {
            return false;
        }
        let CursorStep::Item(item) = self.source.next() else { return false };
        host.shared.meter.spend(1);
        host.stack.push(std::mem::take(result));
        host.stack.push(item);
        true
    }

    fn function(&self) -> Option<&Value> {
        Some(&self.function)
    }

    fn each(&self, visit: &mut dyn FnMut(&Value)) {
        visit(&self.function);
        if let Some(total) = &self.total {
            visit(total);
        }
        self.source.each(visit);
    }
}

struct ReduceEntries {
    function: Value,
    total: Value,
    source: Cursor,
}

impl Work for ReduceEntries {
    fn step(&mut self, host: &mut Host<'_>, incoming: Option<Value>) -> Result<Step> {
        match incoming {
            Some(Value::Reduced(value)) => return Ok(Step::Return((*value).clone())),
            Some(value) => self.total = value,
            None => {}
        }
        Ok(match self.source.next() {
            CursorStep::Item(Value::Vector(entry)) => {
                let part = |index| entry.get(index).cloned().unwrap_or_default();
                let total = std::mem::take(&mut self.total);
                host.begin_call();
                host.stack.extend([total, part(0), part(1)]);
                Step::Repeat(3)
            }
            CursorStep::Blocked(cell) => Step::Realise(cell),
            _ => Step::Return(std::mem::take(&mut self.total)),
        })
    }

    fn function(&self) -> Option<&Value> {
        Some(&self.function)
    }

    fn each(&self, visit: &mut dyn FnMut(&Value)) {
        visit(&self.function);
        visit(&self.total);
        self.source.each(visit);
    }
}

/// The result that a loop over a sequence collects.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Keep {
    Result,
    Item,
    Nothing,
}

fn collect(name: &'static str, arguments: Vec<Value>, keep: Keep) -> Result<Step> {
    let [function, source] = take(arguments);
    let source = cursor(name, &source)?;
    let items = Vec::with_capacity(source.left().unwrap_or(0).min(1024));
    Ok(Step::Push(Box::new(Collect { function, source, keep, current: Value::Nil, items })))
}

struct Collect {
    function: Value,
    source: Cursor,
    keep: Keep,
    current: Value,
    items: Vec<Value>,
}

impl Collect {
    /// Adds the result for the current item. Returns whether to continue.
    fn take(&mut self, value: Value, host: &mut Host<'_>) -> Result<bool> {
        match self.keep {
            Keep::Result => self.items.push(value),
            Keep::Item if value.is_truthy() => self.items.push(std::mem::take(&mut self.current)),
            Keep::Item => {}
            Keep::Nothing => return Ok(!matches!(value, Value::Reduced(_))),
        }
        host.shared.meter.note(32);
        host.shared.limits.check_collection(self.items.len())?;
        Ok(true)
    }
}

impl Work for Collect {
    fn step(&mut self, host: &mut Host<'_>, incoming: Option<Value>) -> Result<Step> {
        if let Some(value) = incoming
            && !self.take(value, host)?
        {
            return Ok(Step::Return(Value::Nil));
        }
        loop {
            if host.shared.meter.is_pressed() {
                return Ok(Step::Pause);
            }
            let item = match self.source.next() {
                CursorStep::Item(item) => item,
                CursorStep::Blocked(cell) => return Ok(Step::Realise(cell)),
                CursorStep::End if self.keep == Keep::Nothing => return Ok(Step::Return(Value::Nil)),
                CursorStep::End => return Ok(Step::Return(Value::vector(std::mem::take(&mut self.items)))),
            };
            if self.keep == Keep::Item {
                self.current = item.clone();
            }
            let Some(result) = call_in_place(&self.function, std::slice::from_ref(&item), host) else {
                return Ok(host.call_one(item));
            };
            host.shared.meter.work(1)?;
            if !self.take(result?, host)? {
                return Ok(Step::Return(Value::Nil));
            }
        }
    }

    fn again(&mut self, host: &mut Host<'_>, result: &mut Value, wanted: usize) -> bool {
        let limit = host.shared.limits.collection_size;
        if wanted != 1 || self.items.len() >= limit || matches!(result, Value::Reduced(_)) {
            return false;
        }
        if !host.shared.meter.has_fuel(1) {
            return false;
        }
        let CursorStep::Item(item) = self.source.next() else { return false };
        host.shared.meter.spend(1);
        if self.keep != Keep::Nothing {
            host.shared.meter.note(32);
        }
        match self.keep {
            Keep::Nothing => {}
            Keep::Item => {
                let current = std::mem::replace(&mut self.current, item.clone());
                if result.is_truthy() {
                    self.items.push(current);
                }
            }
            Keep::Result => self.items.push(std::mem::take(result)),
        }
        host.stack.push(item);
        true
    }

    fn function(&self) -> Option<&Value> {
        Some(&self.function)
    }

    fn each(&self, visit: &mut dyn FnMut(&Value)) {
        visit(&self.function);
        visit(&self.current);
        self.items.iter().for_each(&mut *visit);
        self.source.each(visit);
    }
}

struct Group {
    function: Value,
    source: Cursor,
    current: Value,
    /// The group of the current item, while the key is being realised.
    key: Option<Value>,
    groups: Map,
}

impl Group {
    /// Adds the current item to its group. The key is realised.
    fn file(&mut self, host: &mut Host<'_>) -> Result<()> {
        let key = self.key.take().unwrap_or_default();
        let item = std::mem::take(&mut self.current);
        host.shared.meter.work(key.shape().weight() / 8)?;
        // The group is moved out of the map while it grows, so that it grows in place.
        let group = self.groups.get_mut(&key).map(std::mem::take);
        let mut group = match group {
            Some(Value::Vector(group)) => {
                host.shared.meter.note(32);
                group
            }
            _ => {
                host.shared.meter.note(256);
                crate::value::Vector::default()
            }
        };
        group.push(item);
        self.groups.insert(key, Value::Vector(group));
        Ok(())
    }
}

impl Work for Group {
    fn step(&mut self, host: &mut Host<'_>, incoming: Option<Value>) -> Result<Step> {
        if let Some(key) = incoming {
            self.key = Some(key);
        }
        if let Some(key) = &self.key {
            let key = std::slice::from_ref(key);
            if let Some(work) = super::super::realise::pending(key, Realise::Deep, host.shared, false)? {
                return Ok(Step::Push(Box::new(Silent(Some(work)))));
            }
            self.file(host)?;
        }
        loop {
            if host.shared.meter.is_pressed() {
                return Ok(Step::Pause);
            }
            let item = match self.source.next() {
                CursorStep::Item(item) => item,
                CursorStep::Blocked(cell) => return Ok(Step::Realise(cell)),
                CursorStep::End => return Ok(Step::Return(Value::Map(std::mem::take(&mut self.groups)))),
            };
            match call_in_place(&self.function, std::slice::from_ref(&item), host) {
                Some(Ok(key)) if !key.may_hold_lazy() => {
                    host.shared.meter.work(1)?;
                    self.current = item;
                    self.key = Some(key);
                    self.file(host)?;
                }
                Some(Err(error)) => return Err(error),
                _ => {
                    self.current = item.clone();
                    return Ok(host.call_one(item));
                }
            }
        }
    }

    fn function(&self) -> Option<&Value> {
        Some(&self.function)
    }

    fn each(&self, visit: &mut dyn FnMut(&Value)) {
        visit(&self.function);
        visit(&self.current);
        if let Some(key) = &self.key {
            visit(key);
        }
        visit(&Value::Map(self.groups.clone()));
        self.source.each(visit);
    }
}

/// Runs another frame and resumes the one below without a value.
struct Silent(Option<Box<dyn Work>>);

impl Work for Silent {
    fn step(&mut self, _: &mut Host<'_>, _: Option<Value>) -> Result<Step> {
        Ok(self.0.take().map_or(Step::Retry, Step::Push))
    }

    fn each(&self, visit: &mut dyn FnMut(&Value)) {
        if let Some(work) = &self.0 {
            work.each(visit);
        }
    }
}
