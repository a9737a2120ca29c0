//! Counts the allocations of a thread, so that tests can check the memory that a program really uses.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The allocator of the tests: the system's, with a count for each thread.
struct Counting;

#[global_allocator]
static COUNTING: Counting = Counting;

thread_local! {
    /// Bytes allocated now, and the peak since the last reset. Negative if a thread frees memory of another
    /// thread.
    static HELD: Cell<(isize, isize)> = const { Cell::new((0, 0)) };
    /// The total of all allocated bytes.
    static ALL: Cell<usize> = const { Cell::new(0) };
}

fn count(bytes: isize) {
    if bytes > 0 {
        let _ = ALL.try_with(|all| all.set(all.get().wrapping_add(bytes.unsigned_abs())));
    }
    // A thread that is ending may have lost its counter.
    let _ = HELD.try_with(|held| {
        let (now, most) = held.get();
        held.set((now + bytes, most.max(now + bytes)));
    });
}

#[expect(unsafe_code, reason = "there is no other way to see every allocation")]
// SAFETY: every call is passed unchanged to the system's allocator; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size().cast_signed());
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size().cast_signed());
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-layout.size().cast_signed());
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Both blocks exist for a moment when a block is moved.
        count(size.cast_signed());
        count(-layout.size().cast_signed());
        unsafe { System.realloc(pointer, layout, size) }
    }
}

/// Returns the peak of bytes that this thread allocated during `work`, beyond those before it, and the
/// result.
pub(crate) fn most_held<T>(work: impl FnOnce() -> T) -> (usize, T) {
    let before = HELD.with(|held| {
        let (now, _) = held.get();
        held.set((now, now));
        now
    });
    let result = work();
    let (_, most) = HELD.with(Cell::get);
    (usize::try_from(most - before).unwrap_or(0), result)
}

/// Returns the bytes that this thread allocated during `work`, freed or not, and the result.
#[cfg(feature = "tally")]
pub(crate) fn all_allocated<T>(work: impl FnOnce() -> T) -> (usize, T) {
    let before = ALL.with(Cell::get);
    let result = work();
    (ALL.with(Cell::get).wrapping_sub(before), result)
}
