//! Resident memory of this process, if the system reports it.

/// Resident memory, in bytes.
pub(crate) fn resident() -> Option<u64> {
    field("VmRSS:")
}

/// Peak of the resident memory, in bytes, since the process started or [`forget_peak`] was called.
pub(crate) fn peak() -> Option<u64> {
    field("VmHWM:")
}

/// Resets the peak. If the system cannot do that, the peak stays that of the whole process.
pub(crate) fn forget_peak() {
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

fn field(name: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}
