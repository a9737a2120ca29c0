//! A snapshotable resource that sessions under test have.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use backstitch_core::execution::{PreparedRestore, ResourceSnapshot, Resources, Snapshotable};
use backstitch_core::session::BoxError;

/// A resource with a number as its state, whose restore can be made to fail.
#[derive(Debug, Default)]
pub struct Counter {
    /// The current number.
    pub number: u64,
    refuses: Arc<AtomicBool>,
}

impl Counter {
    /// The name under which its state is stored.
    pub const NAME: &str = "counter";

    /// A counter that starts with this number.
    pub fn at(number: u64) -> Self {
        Self { number, refuses: Arc::default() }
    }

    /// Changes the number. The result depends on the order of the calls.
    pub fn count(&mut self, by: u64) {
        self.number = self.number.wrapping_mul(3).wrapping_add(by);
    }

    /// A flag: while it is set, the counter refuses to be restored.
    pub fn refusal(&self) -> Arc<AtomicBool> {
        self.refuses.clone()
    }

    /// Resources of a session with only this counter.
    pub fn resources(self) -> Resources {
        Resources::builder().with_snapshotable(self).build().expect("there is one resource")
    }
}

impl Snapshotable for Counter {
    fn snapshot_name(&self) -> &'static str {
        Self::NAME
    }

    fn snapshot(&self) -> Result<ResourceSnapshot, BoxError> {
        ResourceSnapshot::of(&self.number)
    }

    fn prepare_restore(&self, snapshot: &ResourceSnapshot) -> Result<PreparedRestore<Self>, BoxError> {
        if self.refuses.load(Ordering::SeqCst) {
            return Err("it refuses".into());
        }
        let number = serde_json::from_value(snapshot.to_json()?)?;
        Ok(PreparedRestore::new(move |here: &mut Self| {
            here.number = number;
            Ok(())
        }))
    }
}
