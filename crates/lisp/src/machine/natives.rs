//! Calls of library functions from frames, whose arguments are not on the stack.

use super::execute::{context, unrealised};
use super::frames::prelude;
use super::work::{Host, Step, Work};
use crate::error::Result;
use crate::library::{Native, Realise, Run};
use crate::value::Value;

/// Calls a function of the library.
pub(super) fn call(native: &'static Native, mut arguments: Vec<Value>, host: &mut Host<'_>) -> Result<Step> {
    if !native.arity.accepts(arguments.len()) {
        return Err(native.arity.mismatch(native.name, arguments.len()));
    }
    if unrealised(native, &arguments, host.shared)?.is_some() {
        return Ok(Step::Push(Box::new(CallNative { native, arguments })));
    }
    if let Some(name) = native.replacement(&arguments) {
        return prelude(host.shared, name, arguments);
    }
    let result = match native.run {
        Run::Frame(enter) => {
            let step = enter(host, arguments);
            host.shared.meter.pay()?;
            return step;
        }
        Run::Leaf(run) => run(&mut context(native.name, host.shared, host.strand), &arguments),
        Run::Taking(run) => run(&mut context(native.name, host.shared, host.strand), &mut arguments),
    };
    host.shared.meter.pay()?;
    match result {
        Err(_) if host.shared.meter.was_refused() => {
            Ok(Step::Push(Box::new(CallNative { native, arguments })))
        }
        result => result.map(Step::Return),
    }
}

/// Calls a function that needs no frame: data, or a leaf whose arguments are realised. `None` if it does need
/// one.
#[inline]
pub(super) fn call_in_place(
    function: &Value,
    arguments: &[Value],
    host: &mut Host<'_>,
) -> Option<Result<Value>> {
    match function {
        Value::Keyword(_) => match arguments {
            [argument] => {
                let found = super::invoke::lookup(argument, function);
                host.strand.missed.note_lookup(argument, function, found.as_ref());
                Some(host.shared.meter.pay().map(|()| found.unwrap_or_default()))
            }
            _ => None,
        },
        Value::Native(native) => {
            let Run::Leaf(run) = native.run else { return None };
            if let [a, b] = arguments
                && let Some(value) = native.of_numbers(a, b)
            {
                return Some(Ok(value));
            }
            if !native.arity.accepts(arguments.len()) || arguments.iter().any(Value::may_hold_lazy) {
                return None;
            }
            for (index, argument) in arguments.iter().enumerate() {
                if native.realise_at(index) == Realise::Deep
                    && let Err(error) = host.shared.meter.work(argument.shape().weight() / 8)
                {
                    return Some(Err(error));
                }
            }
            let result = run(&mut context(native.name, host.shared, host.strand), arguments);
            if let Err(error) = host.shared.meter.pay() {
                return Some(Err(error));
            }
            match result {
                Err(_) if host.shared.meter.was_refused() => None,
                Ok(value) => Some(host.shared.limits.check_depth(value.depth()).map(|()| value)),
                error => Some(error),
            }
        }
        _ => None,
    }
}

/// A call whose arguments must be realised first, or that must be repeated.
struct CallNative {
    native: &'static Native,
    arguments: Vec<Value>,
}

impl Work for CallNative {
    fn step(&mut self, host: &mut Host<'_>, incoming: Option<Value>) -> Result<Step> {
        // A frame that the function pushed has returned its result.
        if let Some(value) = incoming {
            return Ok(Step::Return(value));
        }
        if let Some(work) = unrealised(self.native, &self.arguments, host.shared)? {
            return Ok(Step::Push(work));
        }
        if let Some(name) = self.native.replacement(&self.arguments) {
            return prelude(host.shared, name, std::mem::take(&mut self.arguments));
        }
        let name = self.native.name;
        match self.native.run {
            Run::Leaf(run) => {
                run(&mut context(name, host.shared, host.strand), &self.arguments).map(Step::Return)
            }
            Run::Taking(run) => {
                run(&mut context(name, host.shared, host.strand), &mut self.arguments).map(Step::Return)
            }
            Run::Frame(enter) => {
                let arguments = std::mem::take(&mut self.arguments);
                match enter(host, arguments)? {
                    Step::Call(function, arguments) => Ok(Step::Become(function, arguments)),
                    other => Ok(other),
                }
            }
        }
    }

    fn each(&self, visit: &mut dyn FnMut(&Value)) {
        self.arguments.iter().for_each(visit);
    }
}
