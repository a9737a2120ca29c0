//! `backstitch lisp run`.

use serde_json::{Value as Json, json};

use crate::command::{TemporaryFile, backstitch, backstitch_reading};

/// Runs a program from standard input.
fn run(program: &str, options: &[&str]) -> crate::command::Ran {
    backstitch_reading(program, &[&["lisp", "run", "-"], options].concat())
}

#[test]
fn a_file_is_run_and_its_value_printed() {
    let file = TemporaryFile::new("value.clj", "(def numbers [1 2 3])\n(map inc numbers)\n");
    assert_eq!(backstitch(&["lisp", "run", file.path()]).worked(), "(2 3 4)\n");
}

#[test]
fn standard_input_is_run() {
    assert_eq!(run("{:b 2 :a \"x\"}", &[]).worked(), "{:a \"x\", :b 2}\n");
}

#[test]
fn prints_come_before_the_value() {
    assert_eq!(
        run("(println \"first\" 1) (println [\"second\"]) :done", &[]).worked(),
        "first 1\n[second]\n:done\n"
    );
}

#[test]
fn prints_of_a_program_that_fails_are_shown() {
    let ran = run("(println \"so far\") (/ 1 0)", &[]);
    assert_eq!((ran.code, ran.output.as_str()), (Some(1), "so far\n"));
    assert!(ran.errors.starts_with("arithmetic_error: "), "{}", ran.errors);
}

#[test]
fn data_are_read_from_files() {
    let orders = TemporaryFile::new("orders.json", r#"[{"id": 1, "total": 30}, {"id": 2, "total": 12}]"#);
    let rate = TemporaryFile::new("rate.json", "0.5");
    let (orders, rate) = (format!("orders={}", orders.path()), format!("rate={}", rate.path()));
    let program = "(* data/rate (reduce + (map :total data/orders)))";
    assert_eq!(run(program, &["--data", &orders, "--data", &rate]).worked(), "21.0\n");
}

#[test]
fn data_that_cannot_be_used_say_why() {
    let unnamed = run("1", &["--data", "orders"]).called_wrongly();
    assert!(
        unnamed.starts_with("error: --data orders: write it as NAME=FILE.json\ncode: usage;"),
        "{unnamed}"
    );
    let missing = run("1", &["--data", "orders=/nonexistent/orders.json"]).failed();
    assert!(missing.starts_with("error: cannot read /nonexistent/orders.json: "), "{missing}");
    let broken = TemporaryFile::new("broken.json", "{oops");
    let said = run("1", &["--data", &format!("orders={}", broken.path())]).called_wrongly();
    assert!(said.contains("broken.json is not JSON: "), "{said}");
}

#[test]
fn a_missing_file_is_named() {
    let said = backstitch(&["lisp", "run", "/nonexistent/program.clj"]).failed();
    assert!(said.starts_with("error: cannot read /nonexistent/program.clj: "), "{said}");
}

#[test]
fn an_error_shows_its_place_with_a_caret() {
    let said = run("(def x 1)\n(+ x (frist [1 2]))\n", &[]).failed();
    assert!(said.starts_with("unbound_var: "), "{said}");
    let lines: Vec<&str> = said.lines().collect();
    let shown =
        lines.iter().position(|line| line.contains("(+ x (frist [1 2]))")).expect("the line is shown");
    let column = |line: &str, what: &str| line.chars().position(|c| what.contains(c));
    let caret = lines[shown + 1];
    let frist = lines[shown].find("frist").map(|at| lines[shown][..at].chars().count());
    assert_eq!(column(caret, "^"), frist, "{said}");
    assert!(said.contains("hint: did you mean `first`"), "{said}");
}

#[test]
fn an_error_while_running_shows_its_place() {
    let said = run("(defn half [x]\n  (/ x 0))\n(half 4)", &[]).failed();
    assert!(said.contains("line 2"), "{said}");
    assert!(said.contains('^'), "{said}");
}

#[test]
fn json_holds_the_whole_answer() {
    let answer: Json =
        serde_json::from_str(&run("(println \"p\") {:a [1 nil]}", &["--json"]).worked()).unwrap();
    assert_eq!(answer, json!({"v": 1, "value": "{:a [1 nil]}", "prints": ["p"]}));

    let ran = run("(+ 1\n   nil)", &["--json"]);
    assert_eq!((ran.code, ran.errors.as_str()), (Some(1), ""));
    let answer: Json = serde_json::from_str(&ran.output).unwrap();
    assert_eq!(answer["error"]["kind"], "type_error");
    assert_eq!(answer["error"]["line"], 1);
    assert_eq!(answer.get("value"), None);
}

#[test]
fn return_succeeds_and_fail_does_not() {
    assert_eq!(run("(return 5) 6", &[]).worked(), "5\n");
    let ran = run("(fail {:why \"no\"})", &[]);
    assert_eq!((ran.code, ran.output.as_str()), (Some(1), "{:why \"no\"}\n"));
    let answer: Json = serde_json::from_str(&run("(return 5)", &["--json"]).worked()).unwrap();
    assert_eq!(answer["signal"], "return");
}

#[test]
fn fuel_is_a_limit() {
    let said = run("(loop [i 0] (recur (inc i)))", &["--fuel", "1000"]).failed();
    assert!(said.starts_with("fuel_exceeded: "), "{said}");
}

#[test]
fn there_are_no_tools_but_tasks_are_done() {
    let said = run("(tool/fetch 1)", &[]).failed();
    assert!(said.contains("no tools are available"), "{said}");
    assert_eq!(run("(task \"once\" (+ 1 2))", &[]).worked(), "3\n");
}

#[test]
fn an_empty_program_is_nil() {
    assert_eq!(run("", &[]).worked(), "nil\n");
    assert_eq!(run("; nothing but a comment", &[]).worked(), "nil\n");
}

#[test]
fn a_closed_pipe_ends_the_command_without_an_error() {
    let program = TemporaryFile::new("long.clj", "(dotimes [n 1000] (println n)) (range 1000)");
    // Closed before the command starts: a pipe has room for what it prints.
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let child = std::process::Command::new(env!("CARGO_BIN_EXE_backstitch"))
        .args(["lisp", "run", program.path()])
        .stdout(writer)
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let ended = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(ended.stderr).unwrap(), "");
    assert_eq!(ended.status.code(), Some(141));
}

/// A process that is killed on drop.
struct Ended(std::process::Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn endless_input_is_refused() {
    for arguments in [&["lisp", "run", "/dev/zero"][..], &["lisp", "run", "-", "--data", "zeros=/dev/zero"]] {
        let said = backstitch(arguments).failed();
        assert!(said.contains("cannot read /dev/zero: it is larger than "), "{said}");
    }
    let file = TemporaryFile::new("large.clj", &" ".repeat((16 << 20) + 1));
    let said = backstitch(&["lisp", "run", file.path()]).failed();
    assert!(said.contains("large.clj: it is larger than 16 MiB"), "{said}");
}

#[test]
fn a_pipe_is_read_if_it_ends() {
    let directory = tempfile::tempdir().unwrap();
    let pipe = directory.path().join("pipe").to_str().unwrap().to_owned();
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let write = |script: &str| {
        Ended(std::process::Command::new("sh").args(["-c", script, "sh", &pipe]).spawn().unwrap())
    };
    let _writer = write("echo '(+ 1 2)' > \"$1\"");
    assert_eq!(backstitch(&["lisp", "run", &pipe]).worked(), "3\n");
    // A pipe whose writer never ends, and one without a writer.
    let writer = write("exec yes > \"$1\"");
    let said = backstitch(&["lisp", "run", &pipe]).failed();
    assert!(said.contains("it is larger than 16 MiB"), "{said}");
    drop(writer);
    let said = backstitch(&["lisp", "run", &pipe]).failed();
    assert!(said.contains("it did not end within 10 seconds"), "{said}");
}
