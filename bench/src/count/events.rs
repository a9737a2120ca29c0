//! Counters of the kernel: instructions, and system calls.
//!
//! A virtual machine may have no counter of instructions. System calls are counted at a tracepoint, which mostly only root
//! may do; each then takes some tenths of a microsecond longer.

use std::fs::File;
use std::io::{self, Read as _};
use std::sync::OnceLock;

use super::Scope;

/// The events that are counted, with their names.
const EVENTS: [(&str, EventKind); 2] =
    [("instructions", EventKind::Instructions), ("system calls", EventKind::Syscalls)];

#[derive(Clone, Copy)]
enum EventKind {
    Instructions,
    Syscalls,
}

/// A counter that runs, or the reason why there is none.
type Counter = Result<Event, String>;

static OF_PROCESS: OnceLock<[Counter; EVENTS.len()]> = OnceLock::new();

thread_local! {
    static OF_THREAD: [Counter; EVENTS.len()] = open(Inherit::None);
}

/// Whether threads that are started later are counted too.
#[derive(Clone, Copy)]
enum Inherit {
    None,
    Threads,
}

fn open(inherit: Inherit) -> [Counter; EVENTS.len()] {
    EVENTS.map(|(_, kind)| Event::open(kind, inherit).map_err(|error| explain(kind, &error)))
}

fn explain(kind: EventKind, error: &io::Error) -> String {
    match (kind, error.kind()) {
        (EventKind::Instructions, io::ErrorKind::NotFound | io::ErrorKind::Unsupported) => {
            "this machine has no counter for them".to_owned()
        }
        _ => error.to_string(),
    }
}

pub(super) fn begin() {
    OF_PROCESS.get_or_init(|| open(Inherit::Threads));
}

/// Returns the events that are not counted, and why.
pub(super) fn missing() -> Vec<(&'static str, String)> {
    let counters = OF_PROCESS.get_or_init(|| open(Inherit::Threads)).iter().zip(EVENTS);
    counters.filter_map(|(counter, (name, _))| Some((name, counter.as_ref().err()?.clone()))).collect()
}

pub(super) fn instructions(scope: Scope) -> Option<f64> {
    read(scope, 0)
}

pub(super) fn syscalls(scope: Scope) -> Option<f64> {
    read(scope, 1)
}

fn read(scope: Scope, index: usize) -> Option<f64> {
    let value = |counters: &[Counter; EVENTS.len()]| counters[index].as_ref().ok()?.value();
    match scope {
        Scope::Thread => OF_THREAD.with(value),
        Scope::Process => OF_PROCESS.get().and_then(value),
        Scope::Children => None,
    }
}

/// An open counter of the kernel.
struct Event(File);

/// The beginning of `perf_event_attr`, as far as the first version of it goes.
#[repr(C)]
#[derive(Default)]
#[cfg(target_os = "linux")]
struct EventAttributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_kind: u64,
    read_format: u64,
    flags: u64,
    wake_up: u32,
    breakpoint: u32,
    address: u64,
}

impl Event {
    fn value(&self) -> Option<f64> {
        let mut bytes = [0; 8];
        (&self.0).read_exact(&mut bytes).ok()?;
        Some(u64::from_ne_bytes(bytes) as f64)
    }

    #[cfg(target_os = "linux")]
    fn open(kind: EventKind, inherit: Inherit) -> io::Result<Self> {
        use std::os::fd::{FromRawFd as _, OwnedFd};

        const HARDWARE: u32 = 0;
        const TRACEPOINT: u32 = 2;
        const INSTRUCTIONS: u64 = 1;
        const INHERIT: u64 = 1 << 1;
        const EXCLUDE_KERNEL: u64 = 1 << 5;
        const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
        const INHERIT_THREADS_ONLY: u64 = 1 << 35;
        const CLOSE_ON_EXEC: libc::c_long = 8;

        let (kind, config, flags) = match kind {
            EventKind::Instructions => (HARDWARE, INSTRUCTIONS, EXCLUDE_KERNEL | EXCLUDE_HYPERVISOR),
            EventKind::Syscalls => (TRACEPOINT, tracepoint()?, 0),
        };
        let inherited = match inherit {
            Inherit::None => 0,
            Inherit::Threads => INHERIT | INHERIT_THREADS_ONLY,
        };
        let size = size_of::<EventAttributes>() as u32;
        let attributes =
            EventAttributes { kind, size, config, flags: flags | inherited, ..EventAttributes::default() };
        let (this_thread, any_processor, no_group): (libc::c_long, libc::c_long, libc::c_long) = (0, -1, -1);
        #[expect(unsafe_code, reason = "no library in use opens counters of the kernel")]
        // SAFETY: the structure has the size that it names, and outlives the call.
        let number = unsafe {
            libc::syscall(
                libc::SYS_perf_event_open,
                &raw const attributes,
                this_thread,
                any_processor,
                no_group,
                CLOSE_ON_EXEC,
            )
        };
        let number = i32::try_from(number).ok().filter(|number| *number >= 0);
        let number = number.ok_or_else(io::Error::last_os_error)?;
        #[expect(unsafe_code, reason = "a new descriptor has no owner yet")]
        // SAFETY: the call has just returned it, and nothing else refers to it.
        let descriptor = unsafe { OwnedFd::from_raw_fd(number) };
        Ok(Self(File::from(descriptor)))
    }

    #[cfg(not(target_os = "linux"))]
    fn open(_: EventKind, _: Inherit) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// Reads the number of the tracepoint that every system call passes.
#[cfg(target_os = "linux")]
fn tracepoint() -> io::Result<u64> {
    let path = |root: &str| format!("{root}/events/raw_syscalls/sys_enter/id");
    let [first, second] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"].map(path);
    let text = std::fs::read_to_string(first).or_else(|_| std::fs::read_to_string(second))?;
    text.trim().parse().map_err(io::Error::other)
}
