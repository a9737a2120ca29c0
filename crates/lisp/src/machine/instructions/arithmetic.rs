//! Numbers and equality outside of the fast paths.

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
    /// Replaces the two values on top by their result.
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

    /// Replaces the two values on top by the result of a comparison.
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

    /// Replaces the two values on top by their equality.
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

/// Checks the size of a number and accounts for it.
fn sized(value: Value, shared: &mut SharedState) -> Result<Value> {
    let bits = number::bits(&value);
    if bits > 0 {
        shared.limits.check_number(bits)?;
        shared.meter.work(bits / 512)?;
        shared.meter.note(64 + bits as usize / 8);
    }
    Ok(value)
}
