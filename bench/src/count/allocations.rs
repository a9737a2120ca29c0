//! The allocator of this program, which counts.
//!
//! Each thread has a slot of its own, so that counting needs no synchronization and does not slow down what is measured.
//! Threads beyond the number of slots share the last one.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use super::Scope;

const SLOTS: usize = 256;
const SHARED: usize = SLOTS - 1;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// Counts of a thread, on a cache line of their own.
#[repr(align(64))]
struct ThreadSlot {
    allocations: AtomicU64,
    bytes: AtomicU64,
}

static COUNTED: [ThreadSlot; SLOTS] =
    [const { ThreadSlot { allocations: AtomicU64::new(0), bytes: AtomicU64::new(0) } }; SLOTS];

/// The next slot that no thread has.
static NEXT: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// The slot of this thread; none as long as it is out of range.
    static SLOT: Cell<usize> = const { Cell::new(usize::MAX) };
}

fn slot() -> usize {
    let own = SLOT.try_with(|slot| {
        if slot.get() == usize::MAX {
            slot.set(NEXT.fetch_add(1, Ordering::Relaxed).min(SHARED));
        }
        slot.get()
    });
    own.unwrap_or(SHARED)
}

fn count(bytes: usize) {
    let index = slot();
    let ThreadSlot { allocations, bytes: all } = &COUNTED[index];
    for (counter, more) in [(allocations, 1), (all, bytes as u64)] {
        if index == SHARED {
            counter.fetch_add(more, Ordering::Relaxed);
        } else {
            // Only this thread writes to it.
            counter.store(counter.load(Ordering::Relaxed) + more, Ordering::Relaxed);
        }
    }
}

/// Returns the number of allocations so far, and of allocated bytes.
pub(super) fn counted(scope: Scope) -> Option<(f64, f64)> {
    let range = match scope {
        Scope::Thread => slot()..slot() + 1,
        Scope::Process => 0..SLOTS,
        Scope::Children => return None,
    };
    let sum = |of: fn(&ThreadSlot) -> &AtomicU64| {
        COUNTED[range.clone()].iter().map(|slot| of(slot).load(Ordering::Relaxed)).sum::<u64>() as f64
    };
    Some((sum(|slot| &slot.allocations), sum(|slot| &slot.bytes)))
}

struct CountingAllocator;

#[expect(unsafe_code, reason = "there is no other way to see every allocation")]
// SAFETY: the allocator of the system does all the work; counting allocates nothing.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        unsafe { System.dealloc(pointer, layout) }
    }

    /// Counts the growth.
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size.saturating_sub(layout.size()));
        unsafe { System.realloc(pointer, layout, size) }
    }
}
