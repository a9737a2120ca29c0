//! Calls of the system that are refused to confined processes, by seccomp.
//!
//! Landlock decides about files. This filter refuses what reaches other programs and people past them: sockets, input
//! for terminals, limits of other processes, keyrings, programs that run as their owner. It compares numbers only, never
//! memory. So whole families of sockets are refused rather than addresses, and a call whose arguments lie in memory
//! is refused as a whole (`openat2`, `io_uring`).

use std::collections::BTreeMap;

use backstitch_core::ports::SandboxSockets;
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule,
};

/// `EPERM`, which refused calls return.
const NOT_PERMITTED: u32 = 1;

/// `ENOSYS`, on which programs use an older call instead.
const NOT_IMPLEMENTED: u32 = 38;

/// `AF_UNIX`.
const LOCAL: u64 = 1;

/// `SOCK_STREAM` and `SOCK_SEQPACKET`: the sockets of such a pair reach each other only. Datagrams can be sent to any
/// address.
const BOUND_PAIRS: [u64; 2] = [1, 5];

/// The bits of a socket's type beside its flags.
const TYPE_BITS: u64 = 0xf;

/// `TIOCSTI`, `TIOCLINUX` and `TIOCSETD`: typing into a terminal, pasting into it, and changing how it is read.
const TYPING: [u64; 3] = [0x5412, 0x541c, 0x5423];

/// `S_ISUID`.
const RUNS_AS_OWNER: u64 = 0o4000;

/// `S_ISGID`.
const RUNS_AS_GROUP: u64 = 0o2000;

/// `O_CREAT` and the own bit of `O_TMPFILE`. Without them, the mode is not an argument of `open`.
const CREATING: [u64; 2] = [0o100, 0o20_000_000];

/// The bit of the numbers of the x32 interface, which the filter does not see as another architecture.
#[cfg(target_arch = "x86_64")]
const X32: i64 = 0x4000_0000;

#[cfg(target_arch = "x86_64")]
mod number {
    pub(super) const IOCTL: &[i64] = &[16, 514];
    pub(super) const SOCKET: i64 = 41;
    pub(super) const CONNECT: i64 = 42;
    pub(super) const BIND: i64 = 49;
    pub(super) const SOCKETPAIR: i64 = 53;
    pub(super) const SET_LIMIT: i64 = 302;
    /// `add_key`, `request_key` and `keyctl`.
    pub(super) const KEYRINGS: [i64; 3] = [248, 249, 250];
    /// Calls that set a mode, with the place of the mode among their arguments.
    pub(super) const CHANGE_MODE: &[(i64, u8)] = &[(90, 1), (91, 1), (268, 2), (452, 2)];
    /// Calls that create a file.
    pub(super) const CREATE: &[(i64, u8)] = &[(85, 1), (133, 1), (259, 2)];
    /// Calls that can create a file, with the places of their flags and of the mode.
    pub(super) const OPEN: &[(i64, u8, u8)] = &[(2, 1, 2), (257, 2, 3)];
}

/// The generic numbers, of all architectures since 2012.
#[cfg(not(target_arch = "x86_64"))]
mod number {
    pub(super) const IOCTL: &[i64] = &[29];
    pub(super) const SOCKET: i64 = 198;
    pub(super) const SOCKETPAIR: i64 = 199;
    pub(super) const BIND: i64 = 200;
    pub(super) const CONNECT: i64 = 203;
    pub(super) const SET_LIMIT: i64 = 261;
    pub(super) const KEYRINGS: [i64; 3] = [217, 218, 219];
    pub(super) const CHANGE_MODE: &[(i64, u8)] = &[(52, 1), (53, 2), (452, 2)];
    pub(super) const CREATE: &[(i64, u8)] = &[(33, 2)];
    pub(super) const OPEN: &[(i64, u8, u8)] = &[(56, 2, 3)];
}

/// `openat2`, whose mode lies in memory.
const OPEN_IN_MEMORY: i64 = 437;

/// `io_uring_setup`, `io_uring_enter` and `io_uring_register`: a ring makes calls that no filter sees.
const RINGS: [i64; 3] = [425, 426, 427];

/// Refuses calls to the calling thread and everything that it starts. `sockets` is what the system can enforce.
pub(super) fn refuse(network: bool, sockets: SandboxSockets) -> Result<(), String> {
    let apply = |filter: Result<BpfProgram, BackendError>| {
        let filter = filter.map_err(|error| format!("seccomp failed: {error}"))?;
        seccompiler::apply_filter(&filter).map_err(|error| format!("seccomp failed: {error}"))
    };
    apply(absence_filter())?;
    apply(refusal_filter(network, sockets))
}

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

fn refusal_filter(network: bool, sockets: SandboxSockets) -> Result<BpfProgram, BackendError> {
    let mut rules = Rules::new();
    // A call without rules is always refused.
    rules.extend(RINGS.map(|number| (number, Vec::new())));
    for number in number::IOCTL {
        // The kernel reads 32 bits of the request, and so does the filter.
        let typing = TYPING.map(|request| rule([is(1, request)]));
        rules.insert(*number, typing.into_iter().collect::<Result<_, _>>()?);
    }
    let other = SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, 0);
    let changing = SeccompCondition::new(2, SeccompCmpArgLen::Qword, SeccompCmpOp::Ne, 0);
    rules.insert(number::SET_LIMIT, vec![rule([other, changing])?]);
    refuse_modes(&mut rules)?;
    match (network, sockets) {
        (true, SandboxSockets::On | SandboxSockets::Inside) => {}
        (true, SandboxSockets::Off) => {
            rules.insert(number::SOCKET, vec![rule([is(0, LOCAL)])?]);
        }
        (false, SandboxSockets::On | SandboxSockets::Inside) => {
            rules.insert(number::SOCKET, vec![rule([is_not(0, LOCAL)])?]);
        }
        (false, SandboxSockets::Off) => {
            rules.extend([number::SOCKET, number::CONNECT, number::BIND].map(|number| (number, Vec::new())));
        }
    }
    if sockets != SandboxSockets::On {
        let kinds = (0..=TYPE_BITS).filter(|kind| !BOUND_PAIRS.contains(kind));
        let mut pairs: Vec<_> =
            kinds.map(|kind| rule([has(1, TYPE_BITS, kind)])).collect::<Result<_, _>>()?;
        pairs.push(rule([is_not(0, LOCAL)])?);
        rules.insert(number::SOCKETPAIR, pairs);
    }
    program(rules, NOT_PERMITTED)
}

/// Refuses modes with which a program runs as the owner of its file, for every user. Directories may pass on their
/// group, so only calls that create files refuse that bit.
fn refuse_modes(rules: &mut Rules) -> Result<(), BackendError> {
    for (number, mode) in number::CHANGE_MODE {
        rules.insert(*number, vec![rule([has(*mode, RUNS_AS_OWNER, RUNS_AS_OWNER)])?]);
    }
    let bits = [RUNS_AS_OWNER, RUNS_AS_GROUP];
    for (number, mode) in number::CREATE {
        let of_bits = bits.map(|bit| rule([has(*mode, bit, bit)]));
        rules.insert(*number, of_bits.into_iter().collect::<Result<_, _>>()?);
    }
    for (number, flags, mode) in number::OPEN {
        let of_bits = bits.iter().flat_map(|bit| {
            CREATING.map(|creating| rule([has(*flags, creating, creating), has(*mode, *bit, *bit)]))
        });
        rules.insert(*number, of_bits.collect::<Result<_, _>>()?);
    }
    Ok(())
}

/// Returns a filter that makes calls seem absent: programs know what to do without them. A process would have the
/// keyrings of its user, with the keys of other programs.
fn absence_filter() -> Result<BpfProgram, BackendError> {
    let absent = number::KEYRINGS.into_iter().chain([OPEN_IN_MEMORY]);
    program(absent.map(|number| (number, Vec::new())).collect(), NOT_IMPLEMENTED)
}

fn program(mut rules: Rules, error: u32) -> Result<BpfProgram, BackendError> {
    #[cfg(target_arch = "x86_64")]
    for (number, of_number) in rules.clone() {
        rules.insert(number | X32, of_number);
    }
    let architecture = std::env::consts::ARCH.try_into()?;
    SeccompFilter::new(
        std::mem::take(&mut rules),
        SeccompAction::Allow,
        SeccompAction::Errno(error),
        architecture,
    )?
    .try_into()
}

type Condition = Result<SeccompCondition, BackendError>;

fn rule<const N: usize>(conditions: [Condition; N]) -> Result<SeccompRule, BackendError> {
    SeccompRule::new(conditions.into_iter().collect::<Result<_, _>>()?)
}

/// Compares 32 bits of an argument, as the kernel does for an `int`.
fn is(argument: u8, value: u64) -> Condition {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value)
}

fn is_not(argument: u8, value: u64) -> Condition {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, value)
}

fn has(argument: u8, mask: u64, value: u64) -> Condition {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(mask), value)
}
