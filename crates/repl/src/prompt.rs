//! The system message of a Lisp agent: how to answer, a short reference of the language, and the form of the
//! answer.
//!
//! Models take every name in it at its word, so a test resolves each name and runs each example. It names
//! only tools and data that the agent has. Without instructions and signature it has at most
//! [`MOST_CHARACTERS`] characters.

use std::fmt::Write as _;
use std::sync::Arc;

use backstitch_core::tool::ToolSpec;
use backstitch_lisp::{Limits, is_keyword_name};
use serde_json::{Map as Object, Value as Json};

use crate::signature::{Signature, is_firewalled};

/// The maximum number of characters of the part that all agents share.
#[cfg(test)]
const MOST_CHARACTERS: usize = 4_000;

/// The maximum number of characters of a JSON Schema in the message.
const SCHEMA_CHARACTERS: usize = 4_000;

const ANSWERING: &str = "\
You work by writing programs. Answer with ONE program in a block fenced as ```clojure, and with few words around it. \
The program runs in a sandbox. Then you are shown what it did, and write the next one.";

const SINGLE: &str = "\
Answer with ONE program in a block fenced as ```clojure, and with few words around it. It runs once, in a sandbox. \
The value of its last expression is the answer; `(return value)` ends it earlier, `(fail \"reason\")` gives up.";

const ENDING: &str = "\
- `(return value)` ends the work with the answer, `(fail \"reason\")` ends it without one. Both end the program at once.
- What you define with `def` and `defn` stays for your next programs. Write docstrings: they are shown to you.
- You see what a program prints. If it prints nothing, you see samples of what it defined, the results of its calls, \
and, if it defined nothing, its value. Print counts, names and a few items rather than everything. Define small \
functions, and call them in a later program.
- A program that fails keeps none of its definitions. The tools that it called have been called all the same.
- `*1` `*2` `*3` are the values of your last programs. `(task \"id\" expression)` records the value under the id; \
a later program with the same id gets that value, and the expression is not run again.";

const TOOLS_FAIL: &str =
    "They return plain data. A failing tool throws: `(try ... (catch Exception e (ex-message e)))`.";

const LANGUAGE: &str = "\
- JSON objects are maps with keyword keys: `(:total row)`; `(get row \"total\")` works too. Maps and sets iterate in the \
order of their keys.
- Forms: def defn fn #() let if when cond case condp and or do for doseq dotimes loop recur -> ->> as-> some-> cond-> \
if-let when-let try catch throw; destructuring, `& rest`. Without `%`, `#()` takes no argument: write `(fn [_] ...)`.
- Sequences: map mapv filter remove reduce keep mapcat map-indexed group-by frequencies sort sort-by distinct partition \
partition-by take drop take-while first rest last nth count some every? apply range concat into conj zipmap flatten.
- Maps: get get-in assoc assoc-in update update-in dissoc merge merge-with select-keys keys vals update-vals. \
Atoms: atom swap! reset! deref. Later: delay force.
- Rows: `(sum-by :total rows)`, also avg-by min-by max-by distinct-by pluck.
- Strings: str subs format with-out-str str/join str/split str/trim str/replace str/lower-case str/includes? str/starts-with? \
parse-long parse-double re-find re-seq re-matches. Patterns have no lookaround and no backreferences.
- Sets: set/union set/difference set/intersection. JSON: json/parse-string json/generate-string. Trees: walk/postwalk.
- Numbers: + - * / quot rem mod max min Math/round Math/sqrt Math/pow. `(/ 1 3)` is a ratio, `(double 1/3)` is 0.333.
";

const DATES: &str = "\
- Dates: LocalDate/parse LocalDate/now LocalDateTime/parse OffsetDateTime/parse Instant/parse Duration/between \
DateTimeFormatter/ofPattern; \
`(.plusDays d 1)`, `(.isBefore a b)`, `(.between ChronoUnit/DAYS a b)`, `(.getDayOfWeek d)`. The time does not change \
while a program runs.
";

/// The parts of an agent that its system message depends on.
pub(crate) struct PromptParts<'a> {
    pub(crate) instructions: Option<&'a str>,
    pub(crate) most_turns: u64,
    pub(crate) limits: &'a Limits,
    pub(crate) data: &'a Object<String, Json>,
    pub(crate) tools: &'a [Arc<ToolSpec>],
    pub(crate) signature: Option<&'a Signature>,
}

/// The system message of an agent.
pub(crate) fn system(agent: &PromptParts<'_>) -> String {
    let mut text = String::new();
    if let Some(instructions) = agent.instructions {
        text.push_str(instructions.trim_end());
        text.push_str("\n\n");
    }
    text.push_str(&shared(agent));
    if let Some(signature) = agent.signature {
        text.push_str(&form_of_answer(signature));
    }
    text
}

/// The part that does not depend on the mission.
fn shared(agent: &PromptParts<'_>) -> String {
    let is_single = agent.most_turns == 1;
    let mut text = String::new();
    text.push_str(if is_single { SINGLE } else { ANSWERING });
    text.push_str("\n\n");
    if !is_single {
        text.push_str(ENDING);
        text.push_str("\n\n");
    }
    text.push_str(
        "The language is a subset of Clojure: no macros, no classes but those named here, no threads. ",
    );
    text.push_str(if agent.tools.is_empty() {
        "There are no files and no network.\n"
    } else {
        "Files and the network are reached by tools only.\n"
    });
    text.push_str(
        "- Names: `data/name` reads data, `(tool/name ...)` calls a tool, your definitions have no prefix.\n",
    );
    if !agent.tools.is_empty() {
        // Writing to a `String` does not fail.
        let _ = match Call::of_pure_tool(agent) {
            Some(call) => writeln!(text, "- Tools take {}. {TOOLS_FAIL}", call.spellings()),
            None => writeln!(text, "- Tools take a map, keywords, or values in order. {TOOLS_FAIL}"),
        };
        text.push_str("- `(pmap f items)` and `(pcalls f g)` call tools concurrently; no `def` or `return` inside of them.\n");
    }
    text.push_str(LANGUAGE);
    text.push_str(DATES);
    let limits = agent.limits;
    let _ = write!(
        text,
        "- One program: {} tool calls, {} prints, {} steps. Beyond the calls or steps it fails; more prints are cut.",
        grouped(limits.tool_calls as u64),
        grouped(limits.print_calls as u64),
        grouped(limits.fuel)
    );
    if !is_single {
        text.push_str("\n\n");
        text.push_str(&example(agent));
    }
    text
}

/// The form of the answer: the signature, and the schema if there is one that says more.
fn form_of_answer(signature: &Signature) -> String {
    let mut text = format!(
        "\n\nThe answer has to fit `{}`. For example: `(return {})`.",
        signature.output,
        signature.output.example()
    );
    if let Some(schema) = &signature.schema {
        let schema = schema.to_string();
        let cut = schema.char_indices().nth(SCHEMA_CHARACTERS).map_or(schema.len(), |(at, _)| at);
        let _ = write!(text, " It has to be valid under this JSON Schema:\n{}", &schema[..cut]);
    }
    text
}

/// Two programs as examples: one that looks, and one that returns.
fn example(agent: &PromptParts<'_>) -> String {
    let data = agent.data.iter().find(|(name, _)| !is_firewalled(name));
    let (looks, found) = match (data, Call::of_pure_tool(agent)) {
        (Some((name, Json::Array(_))), _) => (
            format!(
                "(def found \"The first ones.\" (take 5 data/{name}))\n(println (count data/{name}) (first found))"
            ),
            "(count found)",
        ),
        (Some((name, _)), _) => {
            (format!("(def found \"What I was given.\" data/{name})\n(println found)"), "found")
        }
        (None, Some(call)) => {
            // A program that fails defines nothing.
            let found = format!("(try {} (catch Exception e (ex-message e)))", call.with_map());
            (format!("(def found \"What there is.\"\n  {found})\n(println found)"), "found")
        }
        (None, None) => (
            "(def found \"Squares.\" (map #(* % %) (range 10)))\n(println (count found) (first found))"
                .to_owned(),
            "(count found)",
        ),
    };
    let returned = match agent.signature {
        Some(signature) => signature.output.example(),
        None => format!("{{:answer {found}}}"),
    };
    format!(
        "A program that looks, and in a later turn one that returns:\n```clojure\n{looks}\n```\n```clojure\n(return {returned})\n```"
    )
}

/// An example of a call of a tool that the agent has. Models copy examples, so none changes anything.
struct Call<'a> {
    name: &'a str,
    /// The parameters that the example gives, with values.
    arguments: Vec<(&'a str, &'static str)>,
}

impl<'a> Call<'a> {
    /// A call of the first tool without effects whose parameters are plain.
    fn of_pure_tool(agent: &PromptParts<'a>) -> Option<Self> {
        let pure = agent.tools.iter().filter(|tool| tool.effect.only_reads());
        let mut calls = pure.map(|tool| Self::of(tool.name.as_str(), &tool.parameters));
        calls.find(|call| !call.arguments.is_empty())
    }

    fn of(name: &'a str, schema: &'a Json) -> Self {
        let properties = schema.get("properties").and_then(Json::as_object);
        let required: Vec<&str> = schema
            .get("required")
            .and_then(Json::as_array)
            .map(|names| names.iter().filter_map(Json::as_str).collect())
            .unwrap_or_default();
        let mut arguments = Vec::new();
        // Values are given in the order of the schema, so the example ends before the first optional one.
        for (name, schema) in properties.into_iter().flatten() {
            if !required.contains(&name.as_str()) || !is_keyword_name(name) || arguments.len() == 3 {
                break;
            }
            let value = match schema.get("type").and_then(Json::as_str) {
                Some("string") => match name.as_str() {
                    "path" | "file" => "\"README.md\"",
                    // Both as a glob and as a regular expression.
                    "pattern" => "\"README*\"",
                    _ => "\"...\"",
                },
                Some("integer" | "number") => "1",
                Some("boolean") => "true",
                Some("array") => "[]",
                Some("object") => "{}",
                _ => break,
            };
            arguments.push((name.as_str(), value));
        }
        Self { name, arguments }
    }

    fn with_map(&self) -> String {
        let pairs: Vec<String> =
            self.arguments.iter().map(|(name, value)| format!(":{name} {value}")).collect();
        format!("(tool/{} {{{}}})", self.name, pairs.join(" "))
    }

    /// The three ways of writing a call, as far as it has arguments.
    fn spellings(&self) -> String {
        if self.arguments.is_empty() {
            return format!("a map: `{}`", self.with_map());
        }
        let pairs: String = self.arguments.iter().map(|(name, value)| format!(" :{name} {value}")).collect();
        let values: String = self.arguments.iter().map(|(_, value)| format!(" {value}")).collect();
        format!(
            "a map, keywords, or values in order: `{}` or `(tool/{}{pairs})` or `(tool/{}{values})`",
            self.with_map(),
            self.name,
            self.name
        )
    }
}

/// A number with commas between groups of three digits.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use backstitch_core::journal::Effect;
    use backstitch_core::tool::{ToolName, ToolSpec};
    use backstitch_lisp::{Engine, Inputs, Limits, MachineOutcome, Tools, from_json};
    use serde_json::json;

    use super::*;
    use crate::agent::LispAgent;

    fn with_tool() -> LispAgent {
        let mut spec = ToolSpec::new(ToolName::new("find_files").unwrap(), "");
        spec.parameters = json!({
            "type": "object",
            "properties": {"pattern": {"type": "string"}, "limit": {"type": "integer"}},
            "required": ["pattern", "limit"],
        });
        spec.effect = Effect::Pure;
        LispAgent::new().with_tools([std::sync::Arc::new(spec)])
    }

    /// Words that are not names of the library: syntax, and placeholders of the text.
    const SYNTAX: &[&str] = &[
        "#()",
        "& rest",
        "*1",
        "*2",
        "*3",
        "@",
        "data/name",
        "catch",
        "recur",
        "def",
        "defn",
        "fn",
        "let",
        "if",
        "when",
        "cond",
        "case",
        "condp",
        "and",
        "or",
        "do",
        "for",
        "doseq",
        "dotimes",
        "loop",
        "->",
        "->>",
        "as->",
        "some->",
        "cond->",
        "if-let",
        "when-let",
        "try",
        "throw",
        "delay",
        "with-out-str",
        "return",
    ];

    /// Every word of the reference that stands in a list of names.
    fn names() -> Vec<String> {
        let text = format!("{LANGUAGE}{DATES}");
        let mut names = Vec::new();
        for line in text.lines() {
            // The parts of a line begin with `Topic:` and end with a full stop.
            for part in line.trim_start_matches("- ").split(". ") {
                let Some((topic, list)) = part.split_once(": ") else { continue };
                if topic.contains(' ') {
                    continue;
                }
                let code: Vec<&str> = list.split('`').collect();
                for (at, text) in code.iter().enumerate() {
                    if at % 2 == 0 {
                        let words = text.split([' ', ',', ';']).map(|word| word.trim_end_matches('.'));
                        names.extend(words.filter(|word| !word.is_empty()).map(str::to_owned));
                    }
                }
            }
        }
        names.retain(|name| !SYNTAX.contains(&name.as_str()));
        names.retain(|name| !["also", "destructuring"].contains(&name.as_str()));
        names
    }

    #[test]
    fn every_name_in_it_exists() {
        let engine = Engine::new();
        let names = names();
        assert!(names.len() > 90, "{names:?}");
        for name in names {
            engine.compile(&name, &Inputs::default()).unwrap_or_else(|error| panic!("{name}: {error}"));
        }
        for form in SYNTAX.iter().filter(|form| LANGUAGE.contains(*form)) {
            assert!(!form.is_empty());
        }
    }

    fn inputs(agent: &LispAgent) -> Inputs {
        let data = from_json(&Json::Object(agent.data.clone()), &Limits::default()).unwrap();
        let backstitch_lisp::Value::Map(data) = data else { panic!("an object") };
        let tools = Tools::new().with("find_files", ["pattern", "limit"]);
        Inputs { data, tools, ..Inputs::default() }
    }

    /// Runs a program; each call returns nil.
    fn run(source: &str, inputs: Inputs) -> Inputs {
        run_with(source, inputs, &Ok(backstitch_lisp::Value::Nil))
    }

    /// Runs a program; each call has this result.
    fn run_with(source: &str, inputs: Inputs, result: &Result<backstitch_lisp::Value, String>) -> Inputs {
        let engine = Engine::new();
        let program = engine.compile(source, &inputs).unwrap_or_else(|error| panic!("{source}: {error}"));
        let mut machine = engine.start(&program, inputs.clone());
        loop {
            match machine.run() {
                MachineOutcome::Finished(finished) => {
                    finished.result.unwrap_or_else(|error| panic!("{source}: {error}"));
                    return Inputs { memory: finished.memory, ..inputs };
                }
                MachineOutcome::Suspended(requests) => {
                    for request in requests {
                        machine.resume(request.path(), result.clone());
                    }
                }
            }
        }
    }

    #[test]
    fn every_example_in_it_runs() {
        let agents = [
            LispAgent::new(),
            with_tool(),
            with_tool().with_data("orders", json!([{"total": 1}])),
            LispAgent::new().with_data("_key", json!("secret")).with_data("year", json!(2026)),
            with_tool().with_signature("{count :int, names [:string]}".parse().unwrap()),
        ];
        for agent in agents {
            let text = agent.system();
            assert!(!text.contains("_key") && !text.contains("secret"));
            let mut inputs = inputs(&agent);
            let blocks: Vec<&str> = text.split("```clojure\n").skip(1).collect();
            assert_eq!(blocks.len(), 2, "{text}");
            for block in blocks {
                inputs = run(block.split("```").next().unwrap(), inputs);
            }
            // Calls of tools in the text are complete programs.
            for code in text.split('`').filter(|code| code.starts_with("(tool/find")) {
                run(code, inputs.clone());
            }
        }
        for source in ["(def row {:total 1}) [(:total row) (get row \"total\")]", "[(/ 1 3) (double 1/3)]"] {
            run(source, Inputs::default());
        }
    }

    /// A program that fails defines nothing, so its next turn could not use what it found.
    #[test]
    fn the_example_defines_something_also_if_its_tool_fails() {
        let agent = with_tool();
        let text = agent.system();
        let looks = text.split("```clojure\n").nth(1).and_then(|block| block.split("```").next()).unwrap();
        assert!(looks.contains("(tool/find_files "), "{looks}");
        let after = run_with(looks, inputs(&agent), &Err("there are no files".to_owned()));
        run("(return found)", after);
    }

    #[test]
    fn it_names_only_tools_that_there_are() {
        assert!(!LispAgent::new().system().replace("(tool/name ...)", "").contains("(tool/"));
        let offered = with_tool().system();
        let calls = offered.split("(tool/").skip(1).filter_map(|rest| rest.split([' ', ')']).next());
        assert!(calls.into_iter().all(|name| ["find_files", "name"].contains(&name)), "{offered}");
    }

    #[test]
    fn no_example_calls_a_tool_that_changes_something() {
        let effects = [Effect::Pure, Effect::Workspace, Effect::Idempotent, Effect::External];
        let parameters = [
            json!({"type": "object", "properties": {}}),
            json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}),
        ];
        let specs: Vec<_> = effects
            .iter()
            .flat_map(|effect| parameters.iter().map(move |parameters| (effect, parameters)))
            .enumerate()
            .map(|(number, (effect, parameters))| {
                let mut spec = ToolSpec::new(ToolName::new(&format!("tool_{number}")).unwrap(), "");
                (spec.effect, spec.parameters) = (*effect, parameters.clone());
                Arc::new(spec)
            })
            .collect();
        // Every set of these tools, in both orders.
        for set in 1..1_u32 << specs.len() {
            let chosen = specs.iter().enumerate().filter(|(at, _)| set & (1 << at) != 0);
            let mut chosen: Vec<_> = chosen.map(|(_, spec)| spec.clone()).collect();
            for _ in 0..2 {
                let text = shared(&LispAgent::new().with_tools(chosen.clone()).prompt_parts());
                for spec in chosen.iter().filter(|spec| spec.effect != Effect::Pure) {
                    let call = format!("(tool/{} ", spec.name.as_str());
                    assert!(!text.contains(&call), "{call} in {text}");
                }
                let can_show = chosen
                    .iter()
                    .any(|spec| spec.effect == Effect::Pure && spec.parameters["required"].is_array());
                assert_eq!(text.contains("(tool/tool_"), can_show, "{text}");
                chosen.reverse();
            }
        }
    }

    #[test]
    fn it_is_short() {
        for agent in [LispAgent::new(), with_tool(), with_tool().with_data("orders", json!([1]))] {
            let characters = shared(&agent.prompt_parts()).chars().count();
            assert!(characters <= MOST_CHARACTERS, "{characters}");
        }
    }

    #[test]
    fn a_single_program_has_no_second_turn() {
        let single = with_tool().with_max_turns(1).system();
        assert!(!single.contains("*1") && !single.contains("next one"), "{single}");
    }
}
