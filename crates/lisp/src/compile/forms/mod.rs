//! The special forms and macros of the language, each compiled to the few kinds of expression of the tree.
//!
//! A special form of Clojure cannot be shadowed. A macro of Clojure is shadowed by a local or a definition of
//! the same name, except when written `clojure.core/name`, as expansions do.

mod attempt;
mod binding;
mod branch;
mod define;
mod interop;
mod iterate;
mod thread;

use super::analyse::Analyser;
use super::builtins::INTERNAL;
use super::node::{Expr, NodeKind};
use super::scope::is_local;
use crate::edn::form_to_value;
use crate::error::{Error, ErrorKind, Result};
use crate::reader::{Form, Name, Span};
use crate::value::Value;

/// Special forms, which cannot be shadowed.
const SPECIAL: &[&str] =
    &["def", "if", "do", "let*", "fn*", "loop*", "recur", "quote", "var", "try", "new", "."];

/// Names that Clojure has and this language does not, each with an alternative.
const UNSUPPORTED: &[(&str, &str)] = &[
    ("defmacro", "write a function instead"),
    ("defmulti", "use `cond` or `case` inside a function"),
    ("defmethod", "use `cond` or `case` inside a function"),
    ("defrecord", "use a map"),
    ("deftype", "use a map"),
    ("defprotocol", "use functions on maps"),
    ("defstruct", "use a map"),
    ("extend-type", "use functions on maps"),
    ("extend-protocol", "use functions on maps"),
    ("reify", "use a map of functions"),
    ("proxy", "use a map of functions"),
    ("gen-class", "there are no classes"),
    ("set!", "nothing can be assigned; use `loop` or an atom"),
    ("binding", "pass the value as an argument"),
    ("with-redefs", "pass the function as an argument"),
    ("locking", "there are no threads"),
    ("dosync", "use an atom"),
    ("ref", "use an atom"),
    ("agent", "use an atom"),
    ("future", "use `pmap` or `pcalls`"),
    ("promise", "use `pmap` or `pcalls`"),
    ("eval", "programs cannot make programs"),
    ("read-string", "use `clojure.edn/read-string`"),
    ("load-string", "programs cannot make programs"),
    ("slurp", "there are no files; use a tool"),
    ("spit", "there are no files; use a tool"),
    ("with-open", "there are no files; use a tool"),
    (
        "re-matcher",
        "a matcher would change with each use; use `re-seq` for all matches or `re-find` for the first",
    ),
    ("re-groups", "`re-find`, `re-matches` and `re-seq` give the groups themselves"),
    ("monitor-enter", "there are no threads"),
    ("with-meta", "there is no metadata: keep it beside the value, in a map or a vector"),
    ("vary-meta", "there is no metadata: keep it beside the value, in a map or a vector"),
    ("meta", "there is no metadata; a docstring stands after the name: `(defn f \"doc\" [x] ...)`"),
    ("alter-var-root", "define the name again: `(def x (inc x))`"),
    ("bigdec", "there are no decimals: count in cents as integers, or use a ratio such as `1/10`"),
    ("with-precision", "there are no decimals; round with `(Math/round x)` or `(format \"%.2f\" x)`"),
    ("memfn", "write a function: `#(.method %)`"),
    ("load-file", "there are no files; use a tool"),
    ("read-line", "nobody types; read `data/name`"),
    ("thread", "use `pmap` or `pcalls`"),
    ("go", "use `pmap` or `pcalls`"),
];

impl Analyser<'_> {
    /// Compiles a list whose head is a special form or a macro; `None` for any other head.
    pub(crate) fn special(
        &mut self,
        name: &Name,
        items: &[Form],
        span: Span,
        tail: bool,
    ) -> Result<Option<Expr>> {
        let (name, qualified) = match name.namespace() {
            None => (name.full(), false),
            Some("clojure.core" | "core") => (name.name(), true),
            Some(_) => return Ok(None),
        };
        if !qualified && !SPECIAL.contains(&name) {
            let symbol = Name::new(name);
            if is_local(&self.levels, &symbol) || self.names.globals.number(name).is_some() {
                return Ok(None);
            }
        }
        let arguments = &items[1..];
        let form = SpecialForm { arguments, span, tail };
        Ok(Some(match name {
            "quote" => match arguments {
                [form] => Expr::constant(form_to_value(form)?, span),
                _ => return Err(invalid("(quote form)")),
            },
            "do" => self.body(arguments, span, tail)?,
            "comment" => Expr::constant(Value::Nil, span),
            "if" => self.form_if(form, false)?,
            "if-not" => self.form_if(form, true)?,
            "when" => self.form_when(form, false)?,
            "when-not" => self.form_when(form, true)?,
            "cond" => self.form_cond(arguments, span, tail)?,
            "condp" => self.form_condp(arguments, span, tail)?,
            "case" => self.form_case(arguments, span, tail)?,
            "and" => self.joined(arguments, span, tail, Value::Boolean(true), NodeKind::And)?,
            "or" => self.joined(arguments, span, tail, Value::Nil, NodeKind::Or)?,
            "let" | "let*" => self.form_let(arguments, span, tail)?,
            "letfn" => self.form_letfn(arguments, span, tail)?,
            "loop" | "loop*" => self.form_loop(arguments, span)?,
            "recur" => self.form_recur(arguments, span, tail)?,
            "if-let" => self.form_let_branch(form, Test::Truthy, false)?,
            "if-some" => self.form_let_branch(form, Test::Some, false)?,
            "when-let" => self.form_let_branch(form, Test::Truthy, true)?,
            "when-some" => self.form_let_branch(form, Test::Some, true)?,
            "when-first" => self.form_when_first(arguments, span, tail)?,
            "fn" | "fn*" => self.form_fn(arguments, span)?,
            "def" => self.form_def(arguments, span)?,
            "defonce" => self.form_defonce(arguments, span)?,
            "defn" | "defn-" => self.form_defn(arguments, span)?,
            "declare" => self.form_declare(arguments, span)?,
            "var" => self.form_var(arguments, span)?,
            "ns" | "in-ns" | "require" | "use" | "refer" | "import" => {
                self.form_require(name, arguments, span)?
            }
            "->" => self.form_thread(form, thread::ThreadPosition::First)?,
            "->>" => self.form_thread(form, thread::ThreadPosition::Last)?,
            "some->" => self.form_some_thread(form, thread::ThreadPosition::First)?,
            "some->>" => self.form_some_thread(form, thread::ThreadPosition::Last)?,
            "cond->" => self.form_cond_thread(form, thread::ThreadPosition::First)?,
            "cond->>" => self.form_cond_thread(form, thread::ThreadPosition::Last)?,
            "as->" => self.form_as_thread(arguments, span, tail)?,
            "doto" => self.form_doto(arguments, span)?,
            ".." => self.form_dot_dot(arguments, tail)?,
            "for" => self.form_for(arguments, span)?,
            "doseq" => self.form_doseq(arguments, span)?,
            "dotimes" => self.form_dotimes(arguments, span)?,
            "while" => self.form_while(arguments, span)?,
            "lazy-seq" => self.form_lazy_seq(arguments, span)?,
            "lazy-cat" => self.form_lazy_cat(arguments, span)?,
            "delay" => self.form_later("delay*", arguments, span)?,
            "with-out-str" => self.form_later("with-out-str*", arguments, span)?,
            "try" => self.form_try(arguments, span)?,
            "assert" => self.form_assert(arguments, span)?,
            "new" => self.form_new(arguments, span)?,
            "." => self.form_dot(arguments, span)?,
            "task" => self.form_task(arguments, span)?,
            "time" if arguments.len() == 1 => self.form(&arguments[0], tail)?,
            _ => {
                return match unsupported(name) {
                    Some(error) if self.builtin(name).is_none() => Err(error),
                    _ => Ok(None),
                };
            }
        }))
    }

    /// Passes a body to an internal function, as a function of no arguments.
    fn form_later(&mut self, internal_name: &str, arguments: &[Form], span: Span) -> Result<Expr> {
        let parameters = Form::vector(Vec::new(), span);
        let body =
            list("clojure.core/fn", std::iter::once(parameters).chain(arguments.iter().cloned()), span);
        self.form(&internal(internal_name, [body], span), false)
    }

    fn form_task(&mut self, arguments: &[Form], span: Span) -> Result<Expr> {
        let [id, body @ ..] = arguments else { return Err(invalid("(task \"id\" body...)")) };
        let id = self.form(id, false)?;
        let body = self.body(body, span, false)?;
        Ok(Expr::new(NodeKind::Task(Box::new(id), Box::new(body)), span))
    }
}

/// Names of other languages, with what they are called here.
const FOREIGN: &[(&[&str], &str)] = &[
    (&["sum"], "write `(reduce + xs)`, or `(sum-by :field rows)`"),
    (&["avg", "average", "mean"], "write `(/ (reduce + xs) (count xs))`, or `(avg-by :field rows)`"),
    (&["len", "length", "size", "strlen"], "write `(count xs)`"),
    (&["append", "push", "add"], "write `(conj xs x)`, or `(concat xs ys)` for several"),
    (&["foreach", "for-each", "forEach"], "write `(doseq [x xs] ...)`"),
    (&["null", "None", "undefined", "nill"], "it is `nil`"),
    (&["True"], "it is `true`"),
    (&["False"], "it is `false`"),
    (&["lambda", "function", "func"], "write `(fn [x] ...)` or `#(... %)`"),
    (&["defun", "define"], "write `(defn name [x] ...)`, or `(def name value)`"),
    (&["setq", "setf", "set!"], "write `(def name value)`, or use an atom"),
    (&["elif", "elsif", "else"], "write `(cond test1 a test2 b :else c)`"),
    (&["car", "head"], "write `(first xs)`"),
    (&["cdr", "tail"], "write `(rest xs)`"),
    (&["progn", "begin"], "write `(do ...)`"),
    (&["mapcar"], "write `(map f xs)`"),
    (&["fold", "foldl", "reduce-left"], "write `(reduce f init xs)`"),
    (&["&&"], "write `(and a b)`"),
    (&["||"], "write `(or a b)`"),
    (&["!"], "write `(not x)`"),
    (&["!=", "<>"], "write `(not= a b)`"),
    (&["**", "^", "pow", "expt"], "write `(Math/pow x n)`"),
    (&["sqrt"], "write `(Math/sqrt x)`"),
    (&["round"], "write `(Math/round x)`"),
    (&["floor"], "write `(Math/floor x)`"),
    (&["ceil", "ceiling"], "write `(Math/ceil x)`"),
    (&["++"], "write `(inc n)`, or `(str a b)` for texts"),
    (&["null?", "is-nil"], "write `(nil? x)`"),
    (&["isEmpty", "is-empty"], "write `(empty? xs)`"),
    (
        &["contains", "includes", "in", "in?", "member", "member?"],
        "write `(some #{x} xs)`, `(contains? m key)` or `(str/includes? s part)`",
    ),
    (&["indexOf", "index"], "write `(.indexOf xs x)` or `(str/index-of s part)`"),
    (&["parseInt", "parse-int", "to-int", "str->int"], "write `(parse-long s)`"),
    (&["parseFloat", "parse-float", "to-float"], "write `(parse-double s)`"),
    (&["toString", "to-string", "to-str"], "write `(str x)`"),
    (&["json-parse", "parse-json", "JSON.parse"], "write `(json/parse-string s true)`"),
    (&["json-stringify", "to-json", "JSON.stringify"], "write `(json/generate-string x)`"),
    (&["console.log", "echo", "puts", "display"], "write `(println x)`"),
    (&["now", "today"], "write `(LocalDate/now)` or `(System/currentTimeMillis)`"),
    (&["string-join", "str-join"], "write `(str/join \", \" xs)`"),
    (&["string-split", "str-split"], "write `(str/split s #\",\")`"),
    (&["group", "groupBy"], "write `(group-by f xs)`"),
    (&["sortBy"], "write `(sort-by f xs)`"),
    (&["flat-map", "flatMap"], "write `(mapcat f xs)`"),
    (&["unique", "uniq"], "write `(distinct xs)`"),
    (&["zip"], "write `(map vector xs ys)`, or `(zipmap keys values)`"),
    (&["enumerate"], "write `(map-indexed vector xs)`"),
    (&["find-first"], "write `(first (filter p xs))`"),
    (&["any?", "any"], "write `(some p xs)`"),
    (&["all?", "all"], "write `(every? p xs)`"),
    (&["into-array", "to-array", "make-array", "object-array"], "write a vector: `(vec xs)`"),
    (&["alength"], "write `(count xs)`"),
    (&["aget"], "write `(nth xs i)`"),
    (&["gensym"], "write a name of your own, or `(random-uuid)` for a new value"),
    (&["StringBuilder.", "StringBuffer."], "write `(str a b)`, or `(str/join xs)` for many texts"),
    (
        &["ArrayList.", "LinkedList.", "Vector."],
        "write a vector: `[]`, `(conj xs x)`, or an atom that holds one",
    ),
    (
        &["HashMap.", "TreeMap.", "LinkedHashMap."],
        "write a map: `{}`, `(assoc m k v)`, or an atom that holds one",
    ),
    (&["HashSet.", "TreeSet."], "write a set: `#{}`, `(conj xs x)`, or an atom that holds one"),
    (&["UUID/randomUUID"], "write `(random-uuid)`"),
    (
        &["SimpleDateFormat.", "java.text.SimpleDateFormat."],
        "write `(.format date (DateTimeFormatter/ofPattern \"yyyy-MM-dd\"))`, with a LocalDate or a LocalDateTime",
    ),
    (
        &[".with"],
        "write `(.withDayOfMonth d 1)` for the first day of the month, `(.withDayOfMonth d (.lengthOfMonth d))` for the \
last one, and `(first (filter #(= DayOfWeek/MONDAY (.getDayOfWeek %)) (iterate #(.plusDays % 1) d)))` for a weekday",
    ),
    (&["json/decode", "json/parse", "json/read-str", "json/loads"], "write `(json/parse-string s true)`"),
    (&["json/encode", "json/write-str", "json/stringify", "json/dumps"], "write `(json/generate-string x)`"),
    (&["Thread/sleep"], "there is nothing to wait for: call the tool again in your next program"),
];

/// The advice for a name of another language.
pub(in crate::compile) fn foreign(name: &str) -> Option<&'static str> {
    FOREIGN.iter().find(|(names, _)| names.contains(&name)).map(|(_, advice)| *advice)
}

/// The error for a name that Clojure has and this language does not.
pub(in crate::compile) fn unsupported(name: &str) -> Option<Error> {
    let (_, advice) = UNSUPPORTED.iter().find(|(other, _)| *other == name)?;
    Some(Error::new(ErrorKind::Unsupported, format!("`{name}` is not supported")).hint(*advice))
}

/// The arguments of a special form, its place, and whether its value is the value of the function around it.
#[derive(Clone, Copy)]
pub(super) struct SpecialForm<'f> {
    arguments: &'f [Form],
    span: Span,
    tail: bool,
}

/// The condition under which a binding form takes its first branch.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Test {
    Truthy,
    Some,
}

/// The error for a malformed special form.
pub(super) fn invalid(expected: &str) -> Error {
    Error::new(ErrorKind::InvalidForm, format!("expected {expected}"))
}

/// Builds a call of an internal function, as a list form.
pub(super) fn internal(name: &str, arguments: impl IntoIterator<Item = Form>, span: Span) -> Form {
    list(&format!("{INTERNAL}/{name}"), arguments, span)
}

/// Builds a list form from a head and arguments.
pub(super) fn list(head: &str, arguments: impl IntoIterator<Item = Form>, span: Span) -> Form {
    let forms: Vec<Form> = std::iter::once(Form::symbol(head, span)).chain(arguments).collect();
    Form::list(forms, span)
}
