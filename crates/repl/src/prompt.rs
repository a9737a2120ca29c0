//! The system message of a Lisp agent: how to answer, a short reference of the language, and the form of the
//! answer.

use std::fmt::Write as _;

use crate::signature::Signature;

const ANSWERING: &str = "\
You work by writing programs. Answer with ONE program in a block fenced as ```clojure, and with few words around it. \
The program runs in a sandbox, and you are shown what it printed and defined before you write the next one.";

const SINGLE: &str = "\
Answer with ONE program in a block fenced as ```clojure, and with few words around it. It runs once, in a sandbox. \
The value of its last expression is the answer; `(return value)` ends it earlier, `(fail \"reason\")` gives up.";

const ENDING: &str = "\
- `(return value)` ends the work with the answer, `(fail \"reason\")` ends it without one. Both end the program at once.
- What a program defines with `def` and `defn` stays for the next ones. Write a docstring: it is what you will see of it.
- Of a large value define a name and print a summary. `println` shows you what you need to know, nothing else does.
- A program that fails keeps none of its definitions. Calls of tools that it made have happened all the same.
- `*1`, `*2`, `*3` are the values of the last programs. `(task \"id\" expression)` does its work once, whatever is run again.";

const LANGUAGE: &str = "\
The language is a subset of Clojure.
- Names: `tool/name` calls a tool, `data/name` reads data, your own definitions have no prefix.
- Tools take a map, keywords or values in order: `(tool/search {:query \"x\" :limit 3})`, `(tool/search :query \"x\")`, `(tool/search \"x\" 3)`. \
They give plain data; keys of objects are keywords. A tool that fails throws: `(try (tool/x) (catch Exception e (ex-message e)))`.
- Forms: def defn fn #() let if when cond case condp and or do doseq for loop recur -> ->> as-> some-> cond-> try catch throw, \
if-let when-let, destructuring, `&` rest parameters.
- Collections: map filter remove reduce keep mapcat map-indexed group-by frequencies sort sort-by distinct partition take drop \
first rest last nth count get get-in assoc assoc-in update update-in dissoc merge select-keys keys vals zipmap into conj concat \
range some every? apply; sets: union difference intersection; atoms: atom swap! reset! @.
- Text and numbers: str format subs clojure.string/join split trim replace lower-case includes?, re-find re-seq, parse-long \
parse-double, + - * / quot mod max min Math/round.
- `(pmap f items)` and `(pcalls f g)` run calls of tools side by side; no `def` or `return` inside of them.
- There are no files, no network, no macros, no Java but for what is named here. Time stands still while a program runs.";

/// The system message of an agent with these instructions, this maximum number of turns, and this form of
/// the answer.
pub(crate) fn system(instructions: Option<&str>, most_turns: u64, signature: Option<&Signature>) -> String {
    let is_single = most_turns == 1;
    let mut text = String::new();
    if let Some(instructions) = instructions {
        text.push_str(instructions.trim_end());
        text.push_str("\n\n");
    }
    text.push_str(if is_single { SINGLE } else { ANSWERING });
    text.push_str("\n\n");
    if !is_single {
        text.push_str(ENDING);
        text.push_str("\n\n");
    }
    text.push_str(LANGUAGE);
    if let Some(signature) = signature {
        // Writing to a `String` does not fail.
        let _ = write!(
            text,
            "\n\nThe answer has to fit `{}`. For example: `(return {})`.",
            signature.output,
            signature.output.example()
        );
    }
    text
}
