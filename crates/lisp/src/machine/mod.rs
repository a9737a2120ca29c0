//! The evaluator: runs a compiled program, one instruction after the other, and suspends it when the host is
//! needed.
//!
//! The machine owns every frame. A tool call leaves the frames in place and returns control to the host,
//! which answers at any later time; several branches of a `pmap` may wait at the same time and be answered in
//! any order. The same program with the same inputs and answers gives the same value, prints and fuel.
//!
//! No instruction and no library function evaluates by recursion on the Rust stack, so no program can
//! overflow it.

mod collect;
mod execute;
mod fiber;
pub(crate) mod finish;
pub(crate) mod frames;
mod instructions;
mod invoke;
mod meter;
mod missed;
mod natives;
mod outcome;
mod prints;
mod random;
mod realise;
mod request;
mod run;
mod shared;
mod thunks;
mod tools;
mod unwind;
mod work;

use std::collections::HashMap;
use std::sync::Arc;

use fiber::{Exit, Fiber, FiberState, Frame, Strand, ThrownError};
use finish::Finish;
pub(crate) use invoke::lookup;
pub(crate) use meter::Meter;
pub use outcome::{MachineOutcome, ProgramResult};
use prints::PrintLog;
pub(crate) use random::Random;
pub use request::{CallPath, Request, TaskRecord, ToolCall};
use shared::SharedState;
pub(crate) use unwind::is_instance;
pub(crate) use work::Enter;
pub use work::Signal;

use crate::compile::Program;
use crate::effort::{self, ShouldStop, Watch};
use crate::engine::{Engine, FIRST_STAMP};
use crate::error::{Error, ErrorKind};
use crate::inputs::Inputs;
use crate::value::{Closure, Stamp, Value};

/// A running program. The host drives it with [`Machine::run`] and [`Machine::resume`].
pub struct Machine {
    shared: SharedState,
    /// Fibers by number; `None` for those that are finished and joined.
    fibers: Vec<Option<Fiber>>,
    forks: Vec<Fork>,
    signal: Option<Signal>,
    should_stop: Option<ShouldStop>,
    /// Elementary operations that do not make a unit of fuel.
    pending: u64,
}

/// Concurrent branches of one `pmap` or `pcalls`.
struct Fork {
    parent: u32,
    /// Branches that have not started.
    waiting: std::collections::VecDeque<(u32, Fiber)>,
    /// The fibers of the running branches, with the index of the branch.
    running: Vec<(u32, u32)>,
    results: Vec<Option<Result<Value, ThrownError>>>,
    prints: Vec<PrintLog>,
}

/// The deepest nesting of forks.
const DEEPEST_FORK: usize = 8;

impl Machine {
    /// Creates a machine that is ready to run a program.
    pub fn new(engine: &Engine, program: &Program, inputs: Inputs) -> Self {
        let Inputs { data, tools, memory, history, journal, limits, now, seed } = inputs;
        let meter = Meter::new(limits.fuel, limits.memory_bytes);
        let first_stamp = memory.next_stamp.max(FIRST_STAMP);
        let mut shared = SharedState {
            engine: engine.inner().clone(),
            meter,
            given: memory.clone(),
            memory,
            defined: Vec::new(),
            touched: Vec::new(),
            watches: HashMap::new(),
            data,
            data_values: Vec::new(),
            tools,
            history,
            journal,
            now,
            tool_calls: 0,
            suspects: Vec::new(),
            most_suspects: 1024,
            source: program.source.clone(),
            places: program.places.clone(),
            limits,
        };
        shared.memory.names = program.names.clone();
        let strand = Strand { random: Random::new(seed), next_stamp: first_stamp, ..Strand::default() };
        let closure = Closure::new(program.code.clone(), 0, Arc::default(), Stamp(first_stamp));
        let mut fiber = Fiber::new(strand, Value::Closure(Arc::new(closure)), Vec::new());
        fiber.frames.push(Frame::Native(Box::new(Finish::default()), 0));
        let (fibers, forks) = (vec![Some(fiber)], Vec::new());
        Self { shared, fibers, forks, signal: None, should_stop: None, pending: 0 }
    }

    /// Sets a function that is polled for a stop request: once for every 10,000 units of fuel, and during
    /// long calls of library functions. A stopped program ends with an error of the kind
    /// [`ErrorKind::Stopped`], which it cannot catch, and leaves no changes. The function is called often, so
    /// it should be fast.
    pub fn stop_when(&mut self, should_stop: impl Fn() -> bool + Send + Sync + 'static) {
        self.should_stop = Some(Arc::new(should_stop));
    }

    /// Runs until the program is finished or all of its branches wait for the host.
    pub fn run(&mut self) -> MachineOutcome {
        let watch = Watch::begin(self.pending, self.should_stop.clone());
        let outcome = self.run_watched();
        self.pending = watch.pending();
        // A result computed after a stop request is arbitrary.
        if effort::is_stopped()
            && !matches!(&outcome, MachineOutcome::Finished(finished) if is_stopped(finished))
        {
            return MachineOutcome::Finished(Box::new(self.finish(Err(meter::stopped().into()))));
        }
        outcome
    }

    fn run_watched(&mut self) -> MachineOutcome {
        loop {
            let Some(index) = self.next_runnable() else {
                let open: Vec<Request> = self.requests().cloned().collect();
                if !open.is_empty() {
                    return MachineOutcome::Suspended(open);
                }
                let error = Error::new(ErrorKind::Internal, "the program has ended already");
                return MachineOutcome::Finished(Box::new(self.finish(Err(ThrownError::from(error)))));
            };
            let Some(fiber) = &mut self.fibers[index] else { continue };
            match fiber.execute(&mut self.shared) {
                Exit::Waiting => {}
                Exit::Collect => {
                    let may_continue = collect::collect(
                        &mut self.shared,
                        self.fibers.iter().flatten().chain(
                            self.forks.iter().flat_map(|fork| fork.waiting.iter().map(|(_, fiber)| fiber)),
                        ),
                        self.forks.iter().flat_map(|fork| fork.results.iter().flatten().flatten()),
                    );
                    if !may_continue && let Some(fiber) = &mut self.fibers[index] {
                        fiber.pending = FiberState::Raise(self.shared.meter.exceeded().into());
                    }
                }
                Exit::Fork(branches) => self.fork(index as u32, branches),
                Exit::End(signal, value) => self.end(signal, value),
                Exit::Done => {
                    if index == 0 {
                        let result = match self.fibers[0].take() {
                            Some(Fiber { pending: FiberState::Done(result), strand, .. }) => {
                                (result, strand.prints.into_lines(), strand.next_stamp)
                            }
                            _ => (Err(Error::new(ErrorKind::Internal, "no result").into()), Vec::new(), 0),
                        };
                        return MachineOutcome::Finished(Box::new(self.finish_with(result)));
                    }
                    if let Some(outcome) = self.join(index as u32) {
                        return outcome;
                    }
                }
            }
        }
    }

    /// Returns the pending requests.
    pub fn requests(&self) -> impl Iterator<Item = &Request> {
        self.fibers.iter().flatten().filter_map(|fiber| match &fiber.pending {
            FiberState::Waiting(request) => Some(&**request),
            _ => None,
        })
    }

    /// Answers a request: with a value, or with the reason why the tool failed. Returns whether the request
    /// was pending.
    pub fn resume(&mut self, path: &CallPath, answer: Result<Value, String>) -> bool {
        for fiber in self.fibers.iter_mut().flatten() {
            let FiberState::Waiting(request) = &fiber.pending else { continue };
            if request.path() != path {
                continue;
            }
            fiber.pending = match (answer, &**request) {
                (Ok(value), _) => {
                    self.shared.meter.note(16 * value.shape().weight().min(1 << 40) as usize);
                    match self.shared.limits.check_depth(value.depth()) {
                        Ok(()) => FiberState::Deliver(value),
                        Err(error) => FiberState::Raise(error.into()),
                    }
                }
                (Err(message), Request::Tool(call)) => {
                    let error = Error::new(ErrorKind::Tool, format!("tool/{} failed: {message}", call.name));
                    FiberState::Raise(error.into())
                }
                (Err(message), Request::Record(_)) => FiberState::Raise(
                    Error::new(ErrorKind::Internal, format!("a task was not recorded: {message}")).into(),
                ),
            };
            return true;
        }
        false
    }

    fn next_runnable(&self) -> Option<usize> {
        self.fibers.iter().position(|fiber| {
            fiber
                .as_ref()
                .is_some_and(|fiber| !matches!(fiber.pending, FiberState::Waiting(_) | FiberState::Joining))
        })
    }

    /// Starts the branches of a fiber.
    fn fork(&mut self, parent: u32, branches: Vec<(Value, Vec<Value>)>) {
        let Some(fiber) = self.fibers.get_mut(parent as usize).and_then(Option::as_mut) else { return };
        if branches.is_empty() {
            fiber.pending = FiberState::Deliver(Value::vector(Vec::new()));
            return;
        }
        let strand = &mut fiber.strand;
        if strand.ancestors.len() >= DEEPEST_FORK {
            let message = format!("pmap and pcalls are nested more than {DEEPEST_FORK} deep");
            fiber.pending = FiberState::Raise(Error::new(ErrorKind::ParallelismExceeded, message).into());
            return;
        }
        let number = strand.forks;
        strand.forks += 1;
        let fork_stamp = strand.stamp();
        let ancestors: Arc<[u32]> = strand.ancestors.iter().copied().chain([parent]).collect();
        let count = branches.len();
        let mut waiting = std::collections::VecDeque::with_capacity(count);
        for (place, (function, arguments)) in branches.into_iter().enumerate() {
            let place = place as u32;
            let path: Arc<[(u32, u32)]> = strand.branches.iter().copied().chain([(number, place)]).collect();
            let next_stamp = Stamp::first_of_branch(fork_stamp, &path);
            let branch = Strand {
                ancestors: ancestors.clone(),
                branches: path,
                random: strand.random.branch(u64::from(number) << 32 | u64::from(place)),
                next_stamp,
                foreign: strand.foreign,
                ..Strand::default()
            };
            waiting.push_back((place, Fiber::new(branch, function, arguments)));
        }
        let results = std::iter::repeat_with(|| None).take(count).collect();
        let mut fork = Fork {
            parent,
            waiting,
            running: Vec::new(),
            results,
            prints: std::iter::repeat_with(PrintLog::default).take(count).collect(),
        };
        start_branches(&mut fork, &mut self.fibers, self.shared.limits.parallelism);
        self.forks.push(fork);
    }

    /// Takes the result of a finished branch. After the last one, its parent resumes.
    fn join(&mut self, id: u32) -> Option<MachineOutcome> {
        let fiber = self.fibers.get_mut(id as usize)?.take()?;
        let at = self.forks.iter().position(|fork| fork.running.iter().any(|(_, running)| *running == id))?;
        let fork = &mut self.forks[at];
        let running = fork.running.iter().position(|(_, running)| *running == id)?;
        let place = fork.running.remove(running).0 as usize;
        let FiberState::Done(result) = fiber.pending else { return None };
        let result = match result {
            // A branch that exceeds a limit ends the program at once.
            Err(raised) if !unwind::is_catchable(&raised.error) => {
                return Some(MachineOutcome::Finished(Box::new(self.finish(Err(raised)))));
            }
            result => result,
        };
        fork.results[place] = Some(result);
        fork.prints[place] = fiber.strand.prints;
        start_branches(fork, &mut self.fibers, self.shared.limits.parallelism);
        if !fork.running.is_empty() || !fork.waiting.is_empty() {
            return None;
        }
        let fork = self.forks.remove(at);
        let parent = self.fibers.get_mut(fork.parent as usize)?.as_mut()?;
        for prints in fork.prints {
            parent.strand.prints.extend(prints, &self.shared.limits);
        }
        let results: Result<Vec<Value>, ThrownError> = fork.results.into_iter().flatten().collect();
        parent.pending = match results {
            Ok(values) => FiberState::Deliver(Value::vector(values)),
            Err(raised) => FiberState::Raise(raised),
        };
        None
    }

    /// Ends the program: everything in progress is dropped, and only its result and memory are realised.
    fn end(&mut self, signal: Signal, value: Value) {
        self.signal = Some(signal);
        self.forks.clear();
        self.fibers.truncate(1);
        if let Some(Some(fiber)) = self.fibers.first_mut() {
            fiber.frames.clear();
            fiber.stack.clear();
            fiber.handlers.clear();
            fiber.strand.prints.end_captures();
            fiber.frames.push(Frame::Native(Box::new(Finish::default()), 0));
            fiber.pending = FiberState::Deliver(value);
        }
    }

    fn finish(&mut self, result: Result<Value, ThrownError>) -> ProgramResult {
        let prints = match self.fibers.first_mut() {
            Some(Some(fiber)) => std::mem::take(&mut fiber.strand.prints).into_lines(),
            _ => Vec::new(),
        };
        self.finish_with((result, prints, 0))
    }

    fn finish_with(
        &mut self,
        (result, prints, next_stamp): (Result<Value, ThrownError>, Vec<String>, u64),
    ) -> ProgramResult {
        // The result and memory of a program are walked once, regardless of its fuel.
        let _uncounted = effort::UncountedScope::begin();
        let succeeded = result.is_ok() && self.signal != Some(Signal::Fail);
        let memory = if succeeded {
            let mut memory = std::mem::take(&mut self.shared.memory);
            memory.next_stamp = memory.next_stamp.max(next_stamp);
            outcome::note_returned(&mut memory);
            outcome::keep_reachable_atoms(&mut memory, result.as_ref().ok());
            memory
        } else {
            self.shared.given.clone()
        };
        let defined = if succeeded { outcome::names_of(&self.shared.defined, &memory) } else { Vec::new() };
        self.fibers.clear();
        self.forks.clear();
        ProgramResult {
            result: result.map_err(|raised| raised.error),
            signal: self.signal,
            prints,
            memory,
            defined,
            fuel_used: self.shared.meter.fuel_used(),
            tool_calls: self.shared.tool_calls,
        }
    }
}

/// Returns whether the host stopped a program.
fn is_stopped(finished: &ProgramResult) -> bool {
    finished.result.as_ref().is_err_and(|error| error.kind() == ErrorKind::Stopped)
}

/// Starts as many branches as may run concurrently.
fn start_branches(fork: &mut Fork, fibers: &mut Vec<Option<Fiber>>, most: usize) {
    while fork.running.len() < most.max(1) {
        let Some((place, mut fiber)) = fork.waiting.pop_front() else { return };
        let free = fibers.iter().position(Option::is_none).unwrap_or(fibers.len());
        fiber.strand.id = free as u32;
        fork.running.push((place, free as u32));
        if free == fibers.len() {
            fibers.push(Some(fiber));
        } else {
            fibers[free] = Some(fiber);
        }
    }
}
