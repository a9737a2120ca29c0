//! The description of the API (OpenAPI 3.1), built from the table of routes and the types of the reports.

use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, ReplaceBoolSchemas};
use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use crate::problem::Problem;
use crate::routes::routes;
use crate::table::{Answer, Route};

/// Returns the description of the API.
pub fn description() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    // Not all generators of clients know that `true` is a schema too.
    let mut objects = ReplaceBoolSchemas::default();
    objects.skip_additional_properties = true;
    let settings = settings.with_transform(objects).with_transform(RecursiveTransform(join_words));
    // Fields of a body that have a default can be left out; those of an answer are always there.
    let mut bodies = settings.clone().for_deserialize().into_generator();
    let mut generator = settings.for_serialize().into_generator();
    let problem = generator.subschema_for::<Problem>();
    let mut paths = Map::new();
    for route in routes() {
        let operation = operation((&mut generator, &mut bodies), &route, &problem);
        let at = paths.entry(route.path).or_insert_with(|| json!({}));
        at[route.method.as_str().to_ascii_lowercase()] = operation;
    }
    let mut schemas = generator.take_definitions(true);
    for (name, schema) in bodies.take_definitions(true) {
        schemas.entry(name).or_insert(schema);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Backstitch",
            "version": "1",
            "description": "Sessions of agents: look at them, follow them and steer them.",
        },
        "security": [{ "token": [] }],
        "paths": paths,
        "components": {
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
            "schemas": schemas,
        },
    })
}

fn operation(
    (answers, bodies): (&mut SchemaGenerator, &mut SchemaGenerator),
    route: &Route,
    problem: &Schema,
) -> Value {
    let mut operation = json!({
        "operationId": operation_id(route),
        "summary": route.about,
        "responses": {
            "default": {
                "description": "The request failed.",
                "content": { "application/problem+json": { "schema": problem } },
            },
        },
    });
    let parameters = parameters(route);
    if !parameters.is_empty() {
        operation["parameters"] = Value::Array(parameters);
    }
    if route.changes() {
        operation["description"] =
            "Changes something: refused unless the server was started with `--write`.".into();
    }
    if let Some(schema) = route.body {
        let schema = schema(bodies);
        let name = schema.get("$ref").and_then(Value::as_str).and_then(|name| name.rsplit('/').next());
        let named = name.and_then(|name| bodies.definitions().get(name));
        let is_required = named.is_some_and(|named| named.get("required").is_some());
        let content = json!({ "application/json": { "schema": schema } });
        operation["requestBody"] = json!({ "content": content, "required": is_required });
    }
    let (status, content) = match &route.answer {
        Answer::Json(status, schema) => {
            (status.as_u16(), json!({ "application/json": { "schema": schema(answers) } }))
        }
        Answer::Other(kind) => {
            let schema = match *kind {
                "application/json" => json!({ "type": "object" }),
                kind if kind.starts_with("text/") => json!({ "type": "string" }),
                _ => json!({ "type": "string", "format": "binary" }),
            };
            (200, json!({ *kind: { "schema": schema } }))
        }
    };
    operation["responses"][status.to_string()] = json!({ "description": route.about, "content": content });
    if matches!(route.path, "/health" | "/ready") {
        operation["security"] = json!([]);
    }
    operation
}

/// Writes a choice of words as a list of them. As single constants with descriptions, some generators take the first for the only one.
fn join_words(schema: &mut Schema) {
    let words_of = |one: &Value| match (&one["const"], &one["enum"]) {
        (word @ Value::String(_), _) => vec![word.clone()],
        (_, Value::Array(words)) if words.iter().all(Value::is_string) => words.clone(),
        _ => Vec::new(),
    };
    let Some(choices) = schema.get("oneOf").and_then(Value::as_array) else { return };
    let each: Vec<Vec<Value>> = choices.iter().map(words_of).collect();
    if each.iter().any(Vec::is_empty) {
        return;
    }
    let mut about = schema.get("description").and_then(Value::as_str).unwrap_or_default().to_owned();
    for (words, choice) in each.iter().zip(choices) {
        if let ([Value::String(word)], Some(meaning)) = (&words[..], choice["description"].as_str()) {
            about.push_str(&format!("\n\n- `{word}`: {meaning}"));
        }
    }
    schema.remove("oneOf");
    schema.insert("type".to_owned(), "string".into());
    schema.insert("enum".to_owned(), Value::Array(each.concat()));
    schema.insert("description".to_owned(), about.trim().into());
}

/// Returns a name for a route, such as `get_sessions_session_calls`.
fn operation_id(route: &Route) -> String {
    let path = route.path.trim_start_matches("/api/v1");
    let words = path.split(['/', '.']).filter(|word| !word.is_empty());
    let words = words.map(|word| word.trim_matches(['{', '}']));
    let method = route.method.as_str().to_ascii_lowercase();
    std::iter::once(method.as_str()).chain(words).collect::<Vec<_>>().join("_")
}

/// Describes the parts of the path and the query.
fn parameters(route: &Route) -> Vec<Value> {
    let parts = route.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let mut all: Vec<Value> = parts
        .map(|name| json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } }))
        .collect();
    let query = (route.query)();
    let query = query.as_value();
    let required = query["required"].as_array().cloned().unwrap_or_default();
    for (name, schema) in query["properties"].as_object().into_iter().flatten() {
        let mut schema = schema.clone();
        let about = schema.as_object_mut().and_then(|schema| schema.remove("description"));
        let mut parameter = json!({ "name": name, "in": "query", "schema": schema });
        if let Some(about) = about {
            parameter["description"] = about;
        }
        if required.iter().any(|one| one == name) {
            parameter["required"] = true.into();
        }
        all.push(parameter);
    }
    all
}
