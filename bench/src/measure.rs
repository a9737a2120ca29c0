//! Samples, timings and clocks.
//!
//! A sample is the time of many consecutive runs divided by their number, which hides the cost and the
//! resolution of the clock. The first samples are discarded. The median is the typical cost of a run, the
//! minimum its cost without disturbance; processor time excludes what other programs used.

use std::hint::black_box;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// Times of one run, in nanoseconds.
pub(crate) struct Timing {
    pub(crate) median: f64,
    pub(crate) minimum: f64,
    /// The median of processor time.
    pub(crate) cpu: f64,
    pub(crate) samples: usize,
    pub(crate) per_sample: usize,
}

/// The number of samples, and of runs per sample.
#[derive(Clone, Copy)]
pub(crate) struct Effort {
    pub(crate) samples: usize,
    pub(crate) per_sample: usize,
}

impl Effort {
    /// For operations of at most some microseconds.
    pub(crate) const SMALL: Self = Self { samples: 201, per_sample: 256 };
    /// For operations of milliseconds.
    pub(crate) const LARGE: Self = Self { samples: 25, per_sample: 1 };
}

/// Measures `run` by itself.
pub(crate) fn time<T>(effort: Effort, mut run: impl FnMut() -> T) -> Timing {
    time_with(effort, || (), |()| run())
}

/// Measures `run` over values that `prepare` creates: a fresh one for each run, all created before the clock
/// starts. Creating and dropping the values is not measured, nor is dropping the results of the runs.
pub(crate) fn time_with<V, T>(
    effort: Effort,
    mut prepare: impl FnMut() -> V,
    mut run: impl FnMut(&mut V) -> T,
) -> Timing {
    sample(effort, |count| {
        let mut values: Vec<V> = (0..count).map(|_| prepare()).collect();
        let mut results = Vec::with_capacity(count);
        let clock = Stopwatch::start();
        for value in &mut values {
            results.push(black_box(run(black_box(value))));
        }
        clock.elapsed()
    })
}

/// Measures `run` repeatedly over one value that `prepare` creates for each sample.
pub(crate) fn time_repeated<V, T>(
    effort: Effort,
    mut prepare: impl FnMut() -> V,
    mut run: impl FnMut(&mut V) -> T,
) -> Timing {
    sample(effort, |count| {
        let mut value = prepare();
        let mut results = Vec::with_capacity(count);
        let clock = Stopwatch::start();
        for _ in 0..count {
            results.push(black_box(run(black_box(&mut value))));
        }
        clock.elapsed()
    })
}

fn sample(effort: Effort, mut measure: impl FnMut(usize) -> Elapsed) -> Timing {
    let Effort { samples, per_sample } = effort;
    let warm_up = samples / 5 + 1;
    let all: Vec<Elapsed> = (0..warm_up + samples).map(|_| measure(per_sample)).skip(warm_up).collect();
    let sorted = |time: fn(&Elapsed) -> Duration| {
        let mut times: Vec<f64> =
            all.iter().map(|elapsed| time(elapsed).as_nanos() as f64 / per_sample as f64).collect();
        times.sort_by(f64::total_cmp);
        times
    };
    let (wall, cpu) = (sorted(|elapsed| elapsed.wall), sorted(|elapsed| elapsed.cpu));
    Timing { median: wall[samples / 2], minimum: wall[0], cpu: cpu[samples / 2], samples, per_sample }
}

/// Samples that are taken one by one, interleaved with samples of the subject they are compared with.
#[derive(Default)]
pub(crate) struct Samples(Vec<Elapsed>);

/// The owner of the processor time that is counted.
#[derive(Clone, Copy)]
pub(crate) enum Scope {
    Thread,
    Process,
    /// Child processes that have ended.
    Children,
}

/// A sample that is being taken.
pub(crate) struct Running {
    scope: Scope,
    cpu: Duration,
    wall: Instant,
}

impl Timing {
    /// The time of one run, if this is the time of `runs` runs together.
    pub(crate) fn divided(self, runs: usize) -> Self {
        let share = |time: f64| time / runs as f64;
        Self {
            median: share(self.median),
            minimum: share(self.minimum),
            cpu: share(self.cpu),
            per_sample: runs,
            ..self
        }
    }
}

impl Samples {
    /// Takes a sample of `run`.
    pub(crate) fn measure<T>(&mut self, scope: Scope, run: impl FnOnce() -> T) -> T {
        let (cpu, wall) = (scope.processor_time(), Instant::now());
        let result = black_box(run());
        let wall = wall.elapsed();
        self.0.push(Elapsed { wall, cpu: scope.processor_time().saturating_sub(cpu) });
        result
    }

    /// Starts a sample of asynchronous code. [`Samples::end`] finishes it.
    pub(crate) fn begin(&self, scope: Scope) -> Running {
        Running { scope, cpu: scope.processor_time(), wall: Instant::now() }
    }

    pub(crate) fn end(&mut self, running: Running) {
        let wall = running.wall.elapsed();
        self.0.push(Elapsed { wall, cpu: running.scope.processor_time().saturating_sub(running.cpu) });
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn timing(&self) -> Timing {
        let samples = self.0.len();
        let median = |time: fn(&Elapsed) -> Duration| {
            let mut times: Vec<f64> = self.0.iter().map(|elapsed| time(elapsed).as_nanos() as f64).collect();
            times.sort_by(f64::total_cmp);
            (times[samples / 2], times[0])
        };
        let ((wall, minimum), (cpu, _)) = (median(|elapsed| elapsed.wall), median(|elapsed| elapsed.cpu));
        Timing { median: wall, minimum, cpu, samples, per_sample: 1 }
    }

    /// The median of the ratios of samples that were taken in the same round.
    pub(crate) fn median_ratio(&self, other: &Self) -> f64 {
        let wall = |elapsed: &Elapsed| elapsed.wall.as_secs_f64();
        let mut ratios: Vec<f64> =
            self.0.iter().zip(&other.0).map(|(ours, theirs)| wall(ours) / wall(theirs)).collect();
        ratios.sort_by(f64::total_cmp);
        ratios[ratios.len() / 2]
    }
}

impl Scope {
    fn processor_time(self) -> Duration {
        match self {
            Self::Thread => time_of(ClockId::ThreadCPUTime),
            Self::Process => time_of(ClockId::ProcessCPUTime),
            Self::Children => children().unwrap_or_default(),
        }
    }
}

/// The processor time of child processes that have ended, if the system reports it. Its resolution is 10 ms.
fn children() -> Option<Duration> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The name in parentheses may hold anything. 13 fields after it are the time in user mode and that in the
    // kernel.
    let mut fields = stat.rsplit_once(") ")?.1.split(' ').skip(13);
    let ticks: u64 = fields.next()?.parse::<u64>().ok()? + fields.next()?.parse::<u64>().ok()?;
    Some(Duration::from_millis(ticks * 10))
}

/// Wall time and processor time of a run.
#[derive(Clone, Copy)]
pub(crate) struct Elapsed {
    pub(crate) wall: Duration,
    pub(crate) cpu: Duration,
}

/// Measures one run on this thread.
pub(crate) fn once<T>(run: impl FnOnce() -> T) -> (T, Elapsed) {
    let clock = Stopwatch::start();
    let value = run();
    (value, clock.elapsed())
}

/// Two subjects that are measured alternately, so that a disturbance affects both alike.
#[derive(Default)]
pub(crate) struct Pairs {
    pairs: Vec<(Elapsed, Elapsed)>,
}

impl Pairs {
    pub(crate) fn add(&mut self, one: Elapsed, other: Elapsed) {
        self.pairs.push((one, other));
    }

    /// The median of the ratios of wall time.
    pub(crate) fn wall_ratio(&self) -> f64 {
        median(
            self.pairs.iter().map(|(one, other)| one.wall.as_secs_f64() / other.wall.as_secs_f64().max(1e-9)),
        )
    }

    /// The ratio of all processor time.
    pub(crate) fn cpu_ratio(&self) -> f64 {
        let sum = |part: fn(&(Elapsed, Elapsed)) -> Elapsed| {
            self.pairs.iter().map(|pair| part(pair).cpu.as_secs_f64()).sum::<f64>()
        };
        sum(|pair| pair.0) / sum(|pair| pair.1).max(1e-9)
    }

    /// The medians of both subjects, in nanoseconds: wall time and processor time.
    pub(crate) fn medians(&self) -> [(f64, f64); 2] {
        let of = |part: fn(&(Elapsed, Elapsed)) -> Elapsed| {
            let wall = median(self.pairs.iter().map(|pair| part(pair).wall.as_nanos() as f64));
            (wall, median(self.pairs.iter().map(|pair| part(pair).cpu.as_nanos() as f64)))
        };
        [of(|pair| pair.0), of(|pair| pair.1)]
    }

    pub(crate) fn len(&self) -> usize {
        self.pairs.len()
    }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

struct Stopwatch {
    wall: Instant,
    cpu: Duration,
}

impl Stopwatch {
    fn start() -> Self {
        let cpu = processor_time();
        Self { cpu, wall: Instant::now() }
    }

    fn elapsed(&self) -> Elapsed {
        let wall = self.wall.elapsed();
        Elapsed { wall, cpu: processor_time().saturating_sub(self.cpu) }
    }
}

/// The processor time of this thread.
fn processor_time() -> Duration {
    time_of(ClockId::ThreadCPUTime)
}

fn time_of(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::from_secs(seconds) + Duration::from_nanos(u64::try_from(time.tv_nsec).unwrap_or(0))
}
