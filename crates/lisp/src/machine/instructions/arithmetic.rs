//! Numbers and equality, where the short way does not do.

use std::cmp::Ordering;

use super::super::fiber::Fiber;
use super::super::shared::SharedState;
use super::{InstructionResult, after};
use crate::error::Result;
use crate::library::Realise;
use crate::value::{Value, number};

/// Adds, subtracts or multiplies numbers of any kind.
type Compute = fn(&Value, &Value, number::Overflow) -> Result<Value>;

impl Fiber {
    /// Puts the result of the two values on top in their place.
    #[cold]
    pub(super) fn compute(&mut self, compute: Compute, shared: &mut SharedState) -> Result<()> {
        let top = self.stack.len() - 1;
        let result = compute(&self.stack[top - 1], &self.stack[top], number::Overflow::Fail);
        shared.meter.pay()?;
        let result = result?;
        self.stack[top - 1] = sized(result, shared)?;
        self.stack.pop();
        Ok(())
    }

    /// Puts what a comparison of the two values on top says in their place.
    #[cold]
    pub(super) fn compare(
        &mut self,
        name: &str,
        holds: fn(Ordering) -> bool,
        shared: &mut SharedState,
    ) -> Result<()> {
        let top = self.stack.len() - 1;
        let order = number::compare_numbers(name, &self.stack[top - 1], &self.stack[top])?;
        shared.meter.pay()?;
        self.stack[top - 1] = Value::Boolean(order.is_some_and(holds));
        self.stack.pop();
        Ok(())
    }

    /// Puts whether the two values on top are equal in their place.
    pub(super) fn equal(&mut self, shared: &mut SharedState) -> InstructionResult {
        let top = self.stack.len() - 1;
        after(super::super::realise::pending(&self.stack[top - 1..], Realise::Deep, shared, false)?)?;
        let (a, b) = (&self.stack[top - 1], &self.stack[top]);
        shared.meter.work(a.shape().weight().min(b.shape().weight()) / 8)?;
        let is_equal = crate::value::equal(a, b);
        shared.meter.pay()?;
        self.stack[top - 1] = Value::Boolean(is_equal);
        self.stack.pop();
        Ok(())
    }
}

/// A number within its limit, accounted for.
fn sized(value: Value, shared: &mut SharedState) -> Result<Value> {
    let bits = number::bits(&value);
    if bits > 0 {
        shared.limits.check_number(bits)?;
        shared.meter.work(bits / 512)?;
        shared.meter.note(64 + bits as usize / 8);
    }
    Ok(value)
}
