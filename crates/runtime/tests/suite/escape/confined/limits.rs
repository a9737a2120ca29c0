//! Terminals, limits of other processes, and programs that run as their owner.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::PathBuf;
use std::process::{Child, Command};

use backstitch_core::ports::{ProcessSpec, Sandbox, SandboxRefusal, SandboxSockets};

use super::{attempt, confined, run};
use crate::sandbox::{Scene, has_program, is_unsupported};

/// A process of the person. It ends with the test.
struct Other(Child);

impl Other {
    fn start() -> Self {
        Self(Command::new("sleep").arg("1000").spawn().unwrap())
    }

    fn limits(&self) -> String {
        fs::read_to_string(format!("/proc/{}/limits", self.0.id())).unwrap()
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn the_limits_of_other_processes_are_not_changed() {
    if is_unsupported() || !has_program("python3") {
        return;
    }
    let mut other = Other::start();
    let own = || fs::read_to_string("/proc/self/limits").unwrap();
    let before = (other.limits(), own());
    let program = format!(
        "
limit = (ctypes.c_ulong * 2)(0, 0)
for process in [{}, {}, os.getppid()]:
    for name, resource in {{'processor': 0, 'file': 1, 'open': 7, 'memory': 9}}.items():
        attempt(f'{{name}} of {{process}}', lambda: call('prlimit', process, resource, limit, 0))
        attempt(f'{{name}} of {{process}} with high bits', lambda: call('prlimit', process | 1 << 32, resource, limit, 0))
",
        other.0.id(),
        std::process::id()
    );
    for (mode, sandbox) in confined() {
        let scene = Scene::new().await;
        for (name, result) in attempt(&scene, &sandbox, &program).await {
            assert_eq!(result, "1", "{mode}: {name}");
        }
    }
    assert_eq!((other.limits(), own()), before);
    assert!(other.0.try_wait().unwrap().is_none());
}

#[tokio::test]
async fn a_process_sets_its_own_limits() {
    if is_unsupported() {
        return;
    }
    let scene = Scene::new().await;
    let command = "ulimit -n 64 && ulimit -S -c 0 && ulimit -n && nice -n 5 true && ionice -c 3 true && taskset -c 0 true";
    let outcome = scene.run(scene.shell(&Sandbox::workspace(), command)).await;
    assert_eq!(outcome.stdout.text(), "64\n", "{outcome:?}");
    if has_program("python3") {
        let program = "
import resource
attempt('set', lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64)))
attempt('by number 0', lambda: resource.prlimit(0, resource.RLIMIT_NOFILE, (32, 32)))
attempt('read', lambda: resource.prlimit(os.getpid(), resource.RLIMIT_NOFILE))
";
        let results = attempt(&scene, &Sandbox::workspace(), program).await;
        assert_eq!(results["set"], "None");
        assert_eq!(results["by number 0"], "(64, 64)");
        assert_eq!(results["read"], "(32, 32)");
    }
}

/// Types into a terminal that the process made itself, which Landlock allows.
const TYPING: &str = "
import fcntl, pty, struct, termios
main, terminal = pty.openpty()
print('made = yes', flush=True)
letter = ctypes.create_string_buffer(b'x')
for name, request in {'type': 0x5412, 'paste': 0x541c, 'discipline': 0x5423}.items():
    attempt(name, lambda: call('ioctl', terminal, request, letter))
    attempt(name + ' with high bits', lambda: call('ioctl', terminal, request | 1 << 32, letter))
    if X86:
        attempt(name + ' of the other interface', lambda: call(514 | 0x40000000, terminal, request, letter))
        attempt(name + ' of the other interface, old', lambda: call(16 | 0x40000000, terminal, request, letter))
attempt('size', lambda: len(fcntl.ioctl(terminal, termios.TIOCGWINSZ, bytes(8))))
";

#[tokio::test]
async fn nothing_is_typed_into_a_terminal() {
    if is_unsupported() || !has_program("python3") {
        return;
    }
    let scene = Scene::new().await;
    for (mode, sandbox) in confined() {
        let mut results = attempt(&scene, &sandbox.clone().with_terminals(), TYPING).await;
        assert_eq!(results.remove("made").as_deref(), Some("yes"), "{mode}");
        assert_eq!(results.remove("size").as_deref(), Some("8"), "{mode}");
        for (name, result) in results {
            assert_eq!(result, "1", "{mode}: {name}");
        }
    }
    let open = Sandbox::workspace().with_terminals().sockets(SandboxSockets::On);
    assert_eq!(attempt(&scene, &open, TYPING).await["type"], "1");
}

#[tokio::test]
async fn terminals_are_refused_unless_they_are_allowed() {
    if is_unsupported() || !has_program("python3") {
        return;
    }
    let scene = Scene::new().await;
    let make = "import pty; pty.openpty(); print('made')";
    // Those of the person, which may be any.
    let others = "
for name in ['/dev/tty', '/dev/ptmx'] + ['/dev/pts/' + name for name in os.listdir('/dev/pts')]:
    attempt(name, lambda: os.close(os.open(name, os.O_WRONLY | os.O_NOCTTY)))
";
    for (mode, sandbox) in confined() {
        let outcome = run(&scene, &sandbox, make).await;
        assert!(!outcome.success(), "{mode}");
        assert_eq!(outcome.refused, [SandboxRefusal::Terminals], "{mode}: {outcome:?}");
        for (name, result) in attempt(&scene, &sandbox, others).await {
            assert_ne!(result, "None", "{mode}: {name}");
        }
        let outcome = run(&scene, &sandbox.with_terminals(), make).await;
        assert_eq!(outcome.stdout.text(), "made\n", "{mode}: {outcome:?}");
    }
    let text = SandboxRefusal::Terminals.to_string();
    assert!(text.contains("`terminals = true`"), "{text}");
}

/// Makes programs that run as their owner, in each way that there is.
const OWNERS: &str = "
os.umask(0)
AT = (1 << 64) - 100
def made(name):
    path = os.environ['PLACE'] + '/' + name
    open(path, 'w').close()
    return path
for mode in [0o4755, 0o6755, 0o4000]:
    attempt(f'chmod {mode:o}', lambda: os.chmod(made('a'), mode))
    attempt(f'fchmod {mode:o}', lambda: os.fchmod(os.open(made('b'), os.O_RDONLY), mode))
    attempt(f'fchmodat {mode:o}', lambda: call('fchmodat', AT, made('c').encode(), mode))
    attempt(f'fchmodat {mode:o} with high bits', lambda: call('fchmodat', AT, made('d').encode(), mode | 1 << 40))
    attempt(f'fchmodat2 {mode:o}', lambda: call('fchmodat2', AT, made('e').encode(), mode, 0))
for mode in [0o4755, 0o2755]:
    new = lambda name: (os.environ['PLACE'] + f'/{name}{mode:o}').encode()
    attempt(f'open {mode:o}', lambda: os.open(new('f'), os.O_CREAT | os.O_WRONLY, mode))
    attempt(f'openat {mode:o}', lambda: call('openat', AT, new('g'), os.O_CREAT | os.O_WRONLY, mode))
    attempt(f'unnamed {mode:o}', lambda: os.open(os.environ['PLACE'], os.O_TMPFILE | os.O_WRONLY, mode))
    how = (ctypes.c_uint64 * 3)(os.O_CREAT | os.O_WRONLY, mode, 0)
    attempt(f'openat2 {mode:o}', lambda: call('openat2', AT, new('h'), how, 24))
    attempt(f'mknodat {mode:o}', lambda: call('mknodat', AT, new('i'), 0o100000 | mode, 0))
    if X86:
        attempt(f'creat {mode:o}', lambda: call(85, new('j'), mode))
        attempt(f'old open {mode:o}', lambda: call(2, new('k'), os.O_CREAT | os.O_WRONLY, mode))
        attempt(f'mknod {mode:o}', lambda: call(133, new('l'), 0o100000 | mode, 0))
capability = bytes.fromhex('0100000200000000000000000000000000000000')
attempt('capability', lambda: os.setxattr(made('m'), 'security.capability', capability))
";

fn special(directory: PathBuf) -> Vec<(PathBuf, u32)> {
    let entries = fs::read_dir(directory).unwrap().flatten();
    let all = entries.filter_map(|entry| Some((entry.path(), entry.metadata().ok()?.mode())));
    all.filter(|(_, mode)| mode & 0o6000 != 0).collect()
}

#[tokio::test]
async fn no_program_that_runs_as_its_owner_is_made() {
    if is_unsupported() || !has_program("python3") {
        return;
    }
    for (mode, sandbox) in confined() {
        let scene = Scene::new().await;
        // The second place is outside, where only the bits of existing files could change.
        for name in ["a", "b", "c", "d", "e", "m"] {
            fs::write(scene.at("outside").join(name), "").unwrap();
        }
        let make =
            OWNERS.replace("open(path, 'w').close()", "os.path.exists(path) or open(path, 'w').close()");
        let inside = if mode.starts_with("workspace") { "$files" } else { "$TMPDIR" };
        for place in [inside, "$outside"] {
            let program = match place {
                "$TMPDIR" => "os.environ['PLACE'] = os.environ['TMPDIR']\n".to_owned(),
                place => format!("os.environ['PLACE'] = os.environ['BASE'] + {:?}\n", &place[1..]),
            };
            let found = "
attempt('found', lambda: [name for name in os.listdir(os.environ['PLACE'])
    if os.lstat(os.environ['PLACE'] + '/' + name).st_mode & 0o6000])
";
            let mut results = attempt(&scene, &sandbox, &(program + &make + found)).await;
            assert_eq!(results.remove("found").as_deref(), Some("[]"), "{mode}: {place}: {results:?}");
            // Not permitted, or not implemented; outside, Landlock may refuse it first.
            let errors: &[&str] = if place == "$outside" { &["1", "38", "13"] } else { &["1", "38"] };
            for (name, result) in results {
                assert!(errors.contains(&&*result), "{mode}: {place}: {name}: {result}");
            }
        }
        assert_eq!(special(scene.at("files")), []);
        assert_eq!(special(scene.at("outside")), []);
    }
}

/// Directories may pass their group on, as shared repositories need it.
#[tokio::test]
async fn shared_directories_can_be_made() {
    if is_unsupported() {
        return;
    }
    let scene = Scene::new().await;
    let command = "set -e; mkdir shared; chmod g+s shared; chmod 755 inside; install -m 644 inside copy; \
        if command -v git > /dev/null; then git init -q --bare --shared=group repository; fi";
    let outcome = scene.run(scene.shell(&Sandbox::workspace(), command)).await;
    assert!(outcome.success(), "{outcome:?}");
    let mode = fs::metadata(scene.at("files/shared")).unwrap().permissions().mode();
    assert_eq!(mode & 0o2000, 0o2000);
}

#[tokio::test]
async fn programs_of_another_architecture_do_not_avoid_the_filter() {
    if is_unsupported() || !cfg!(target_arch = "x86_64") {
        return;
    }
    let source = "int main(void) { int result; __asm__ volatile (\"int $0x80\" : \"=a\"(result) : \"0\"(20)); return result > 0 ? 0 : 1; }";
    let scene = Scene::new().await;
    fs::write(scene.at("files/old.c"), source).unwrap();
    let compiled =
        Command::new("cc").arg("-o").arg(scene.at("files/old")).arg(scene.at("files/old.c")).status();
    if !compiled.is_ok_and(|status| status.success()) {
        return;
    }
    for (mode, sandbox) in confined() {
        let outcome = scene.run(ProcessSpec::new("./old").sandbox(sandbox)).await;
        assert!(!outcome.success(), "{mode}: {outcome:?}");
    }
}
