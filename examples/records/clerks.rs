//! The agents: one that reads pages of records through a tool, and one that has them as data and writes
//! programs.

use std::sync::Arc;

use backstitch::prelude::*;
use backstitch::repl::LispAgent;
use backstitch::repl::compression::{Compression, Registry};
use backstitch::repl::transcript::TranscriptCompression;
use backstitch::tools::recall;
use backstitch::{Agent, Script, ScriptedCall, ScriptedReply, Tools};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::measured::{Measured, Requests};
use crate::orders::{self, COUNT};

type Failed = Box<dyn std::error::Error>;

/// Orders per page.
const PAGE: u64 = 200;

/// The mission of both agents.
pub(crate) const MISSION: &str =
    "How many paid orders does the north have, and what are they worth together, in cents?";

#[derive(Deserialize, JsonSchema)]
struct Page {
    /// The first order, from 0.
    offset: u64,
}

/// A tool that returns a page of orders.
fn list_orders() -> Result<Tool, Failed> {
    let orders = Arc::new(orders::all());
    let description = format!("Gives {PAGE} of the {COUNT} orders, from an offset on.");
    let builder = Tool::builder("list_orders", description)?.effect(backstitch::journal::Effect::Pure);
    Ok(builder.workspace(backstitch::tool::WorkspaceUse::None).handler(move |_, page: Page| {
        let orders = orders.clone();
        async move {
            let first = usize::try_from(page.offset).unwrap_or(usize::MAX).min(orders.len());
            let last = (first + PAGE as usize).min(orders.len());
            Ok(ToolResult::default().with_value(&orders[first..last])?)
        }
    }))
}

/// An agent that calls tools by JSON: it reads page after page and keeps a running sum in its answers.
pub(crate) fn with_tools(compression: &Value, requests: Requests) -> Result<Agent, Failed> {
    let all = orders::all();
    let mut replies = Vec::new();
    for offset in (0..COUNT).step_by(PAGE as usize) {
        let (count, total) = orders::answer(&all[..offset as usize]);
        let arguments = Map::from_iter([("offset".to_owned(), offset.into())]);
        let so_far = format!("So far {count} orders, {total} cents. I read on.");
        replies.push(ScriptedReply::text(so_far).call(ScriptedCall::new("list_orders", arguments)));
    }
    let (count, total) = orders::answer(&all);
    replies.push(ScriptedReply::text(json!({ "count": count, "total": total }).to_string()));
    let policy = Arc::new(Measured::new(Script { replies }, requests)?);
    let strategy = Registry::<dyn TranscriptCompression>::standard().normalize(compression)?;
    Ok(Agent::new("examples/clerk")
        .policy(policy)
        .instructions("You answer questions about the orders of a shop.")
        .tools(Tools::new([list_orders()?, recall()])?)
        .compression(strategy))
}

/// How much a Lisp agent explores the data before it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// It answers at once.
    Straight,
    /// It counts the orders, and answers.
    Short,
    /// It analyses the data in many ways first.
    Around,
}

/// An agent that answers with programs: the orders are `data/orders`, and never in a request.
pub(crate) fn with_programs(way: Way, compression: &Value, requests: Requests) -> Result<Agent, Failed> {
    let replies =
        programs(way).into_iter().map(|program| ScriptedReply::text(format!("```clojure\n{program}\n```")));
    let policy = Arc::new(Measured::new(Script { replies: replies.collect() }, requests)?);
    let strategy = Registry::<dyn Compression>::standard().normalize(compression)?;
    let lisp = LispAgent::new()
        .with_data("orders", serde_json::to_value(orders::all())?)
        .with_signature("{count :int, total :int}".parse()?)
        .with_max_turns(40)
        .with_compression(strategy);
    Ok(Agent::lisp("examples/clerk", policy, lisp, Tools::default())?)
}

fn programs(way: Way) -> Vec<String> {
    let answer = r#"(def wanted "the paid orders of the north" (filter #(and (:paid %) (= "north" (:region %))) data/orders))
(return {:count (count wanted) :total (reduce + (map :total wanted))})"#;
    match way {
        Way::Straight => return vec![answer.to_owned()],
        Way::Short => return vec!["(println (count data/orders))".to_owned(), answer.to_owned()],
        Way::Around => {}
    }
    let mut programs = vec![
        "(println (count data/orders))\n(println (take 3 data/orders))".to_owned(),
        "(def regions \"all regions\" (distinct (map :region data/orders)))\n(println regions)".to_owned(),
        "(defn paid-in \"the paid orders of a region\" [region]\n  (filter #(and (:paid %) (= region (:region %))) data/orders))\n(println (map #(vector % (count (paid-in %))) regions))".to_owned(),
    ];
    for region in ["north", "east", "south", "west"] {
        programs.push(format!(
            "(def {region}-worth \"what the paid orders of the {region} are worth\" (reduce + (map :total (paid-in \"{region}\"))))\n(println {region}-worth)\n(println (take 5 (reverse (sort-by :total (paid-in \"{region}\")))))"
        ));
        programs.push(format!(
            "(def {region}-customers \"what each customer of the {region} has paid\"\n  (into {{}} (map (fn [[name orders]] [name (reduce + (map :total orders))]) (group-by :customer (paid-in \"{region}\")))))\n(println {region}-customers)"
        ));
    }
    programs.push("(return {:count (count (paid-in \"north\")) :total north-worth})".to_owned());
    programs
}

/// Count and total of an answer, from its structured output or its text.
pub(crate) fn answered(answered: &backstitch::FinalAnswer) -> Option<(u64, u64)> {
    let value: Option<Value> = answered.output.clone().or_else(|| serde_json::from_str(&answered.text).ok());
    let value = value?;
    Some((value["count"].as_u64()?, value["total"].as_u64()?))
}
