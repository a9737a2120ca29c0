//! How much of this process is in memory, where the system tells.

/// How many bytes are in memory.
pub(crate) fn resident() -> Option<u64> {
    field("VmRSS:")
}

/// The most that was in memory, since the process started or the peak was last forgotten.
pub(crate) fn peak() -> Option<u64> {
    field("VmHWM:")
}

/// Forgets the peak. Where that cannot be done, it stays that of the whole process.
pub(crate) fn forget_peak() {
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

fn field(name: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}
