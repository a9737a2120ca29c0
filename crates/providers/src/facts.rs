//! Facts about a model that its server tells: the context window and the price.
//!
//! Servers tell them in different forms, and some tell nonsense. What is not plausible counts as not told: a window
//! outside of 1,000 to 100,000,000 tokens, and a price that is negative or above 0.01 for a token.

use serde_json::Value;

/// The windows that are believed, in tokens.
const WINDOWS: std::ops::RangeInclusive<u64> = 1_000..=100_000_000;

/// The highest price of a token that is believed.
const HIGHEST_PRICE: f64 = 0.01;

/// The names of the window in lists of models. A length that is in use precedes one that is possible.
const WINDOW_KEYS: [&str; 7] = [
    "loaded_context_length",
    "context_length",
    "max_model_len",
    "context_window",
    "max_context_length",
    "max_input_tokens",
    "inputTokenLimit",
];

/// What a server tells about a model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ModelFacts {
    /// The context window, in tokens.
    pub window: Option<u64>,
    /// The price.
    pub price: Option<ServedPrice>,
}

/// The price of a million tokens, in millionths of the server's unit of money.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServedPrice {
    /// Tokens that are sent.
    pub input: u64,
    /// Sent tokens that are read from a cache, if they have a price of their own.
    pub cache_read: Option<u64>,
    /// Sent tokens that are written to a cache, if they have a price of their own.
    pub cache_write: Option<u64>,
    /// Tokens of answers.
    pub output: u64,
}

/// A model that a server offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServedModel {
    /// The server's name of the model.
    pub name: String,
    /// What the list tells about it.
    pub facts: ModelFacts,
}

/// Most models of a list. The longest lists have some hundreds.
const MOST_MODELS: usize = 5_000;

/// Most characters of a name.
const LONGEST_NAME: usize = 200;

impl ServedModel {
    /// Reads a list of models, in the order of the server.
    pub fn all_of_list(list: &Value) -> Vec<Self> {
        let model = |entry: &Value| {
            let name = [&entry["id"], &entry["name"]].into_iter().find_map(Value::as_str)?;
            let name = name.strip_prefix("models/").unwrap_or(name);
            let is_name = !name.is_empty() && name.chars().count() <= LONGEST_NAME;
            is_name.then(|| Self { name: name.to_owned(), facts: ModelFacts::of_entry(entry) })
        };
        entries_of(list).into_iter().flatten().filter_map(model).take(MOST_MODELS).collect()
    }
}

/// Returns the entries of a list of models.
fn entries_of(list: &Value) -> Option<&Vec<Value>> {
    [&list["data"], &list["models"], list].into_iter().find_map(Value::as_array)
}

impl ModelFacts {
    /// Reads a list of models, as OpenAI, vLLM, OpenRouter, LM Studio and many gateways return it.
    pub fn of_list(list: &Value, model: &str) -> Self {
        let is_model = |entry: &&Value| {
            let names = [&entry["id"], &entry["name"]].into_iter().filter_map(Value::as_str);
            names.into_iter().any(|name| name == model || name.strip_prefix("models/") == Some(model))
        };
        entries_of(list)
            .and_then(|entries| entries.iter().find(is_model))
            .map_or_else(Self::default, Self::of_entry)
    }

    /// Reads an entry of a list.
    fn of_entry(entry: &Value) -> Self {
        Self {
            window: WINDOW_KEYS.iter().find_map(|key| window_of(&entry[*key])),
            price: price_of(&entry["pricing"]),
        }
    }

    /// Reads the properties of a llama.cpp server, which serves one model. The window is that of a slot.
    pub fn of_llama_cpp(properties: &Value) -> Self {
        let window = window_of(&properties["default_generation_settings"]["n_ctx"]);
        Self { window, price: None }
    }

    /// Reads the description of a model by Ollama. Its parameter `num_ctx` is the window that is used; without it, the
    /// window is that of the model.
    pub fn of_ollama(shown: &Value) -> Self {
        let parameters = shown["parameters"].as_str().unwrap_or_default();
        let set = parameters.lines().find_map(|line| {
            let (name, value) = line.trim().split_once(char::is_whitespace)?;
            (name == "num_ctx").then(|| plausible_window(value.trim().parse().ok()?)).flatten()
        });
        let of_model = || {
            let mut info = shown["model_info"].as_object()?.iter();
            info.find_map(|(key, value)| key.ends_with(".context_length").then(|| window_of(value))?)
        };
        Self { window: set.or_else(of_model), price: None }
    }
}

fn plausible_window(tokens: u64) -> Option<u64> {
    WINDOWS.contains(&tokens).then_some(tokens)
}

/// Reads a number of tokens: an integer, also as a text.
fn window_of(value: &Value) -> Option<u64> {
    let tokens = value.as_u64().or_else(|| value.as_str()?.trim().parse().ok())?;
    plausible_window(tokens)
}

/// Reads prices for a token. One that is not plausible makes all of them void.
fn price_of(pricing: &Value) -> Option<ServedPrice> {
    let optional = |key: &str| match &pricing[key] {
        Value::Null => Some(None),
        value => token_price(value).map(Some),
    };
    Some(ServedPrice {
        input: token_price(&pricing["prompt"])?,
        cache_read: optional("input_cache_read")?,
        cache_write: optional("input_cache_write")?,
        output: token_price(&pricing["completion"])?,
    })
}

/// Reads the price of a token, a number or a text, as that of a million tokens in millionths.
fn token_price(value: &Value) -> Option<u64> {
    let price: f64 = value.as_f64().or_else(|| value.as_str()?.trim().parse().ok())?;
    (0.0..=HIGHEST_PRICE).contains(&price).then(|| (price * 1e12).round() as u64)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn listed(entry: Value) -> ModelFacts {
        ModelFacts::of_list(&json!({"data": [{"id": "other", "context_length": 9_999}, entry]}), "m")
    }

    fn window(window: u64) -> ModelFacts {
        ModelFacts { window: Some(window), price: None }
    }

    #[test]
    fn each_form_of_a_list_is_read() {
        for key in WINDOW_KEYS {
            assert_eq!(listed(json!({"id": "m", key: 32_768})), window(32_768), "{key}");
        }
        assert_eq!(listed(json!({"id": "m", "context_length": "32768"})), window(32_768));
        let loaded = json!({"id": "m", "max_context_length": 131_072, "loaded_context_length": 4_096});
        assert_eq!(listed(loaded), window(4_096));
        let bare = json!([{"id": "m", "context_length": 8_192}]);
        assert_eq!(ModelFacts::of_list(&bare, "m"), window(8_192));
        let gemini = json!({"models": [{"name": "models/m", "inputTokenLimit": 1_048_576}]});
        assert_eq!(ModelFacts::of_list(&gemini, "m"), window(1_048_576));
        assert_eq!(listed(json!({"id": "mm", "context_length": 8_192})), ModelFacts::default());
    }

    #[test]
    fn all_models_of_a_list_are_read() {
        let list = json!({"data": [{"id": "a", "context_length": 8_192}, {"name": "models/b"}, {"id": 7}, {"id": ""},
            {"id": "x".repeat(300)}, "c"]});
        let names = |list: &Value| -> Vec<String> {
            ServedModel::all_of_list(list).into_iter().map(|model| model.name).collect()
        };
        assert_eq!(names(&list), ["a", "b"]);
        assert_eq!(ServedModel::all_of_list(&list)[0].facts, window(8_192));
        assert!(names(&json!(null)).is_empty() && names(&json!({"data": {}})).is_empty());
    }

    #[test]
    fn prices_of_tokens_become_prices_of_a_million() {
        let pricing = json!({"prompt": "0.00000125", "completion": "0.00001", "input_cache_read": "0.000000125",
            "image": "0.005", "request": "0"});
        let price = ServedPrice {
            input: 1_250_000,
            cache_read: Some(125_000),
            cache_write: None,
            output: 10_000_000,
        };
        assert_eq!(listed(json!({"id": "m", "pricing": pricing})).price, Some(price));
        let free = json!({"id": "m", "pricing": {"prompt": "0", "completion": 0}});
        let free = listed(free).price.unwrap();
        assert_eq!((free.input, free.output), (0, 0));
        for wrong in [
            json!({"prompt": "-1", "completion": "-1"}),
            json!({"prompt": "0.000001", "completion": "0.000001", "input_cache_read": "-1"}),
            json!({"prompt": "0.000001"}),
            json!({"prompt": "NaN", "completion": "inf"}),
            json!({"prompt": "1.25", "completion": "10"}),
            json!({"prompt": {}, "completion": []}),
            json!("free"),
        ] {
            assert_eq!(listed(json!({"id": "m", "pricing": wrong})).price, None, "{wrong}");
        }
    }

    #[test]
    fn windows_that_are_not_plausible_count_as_not_told() {
        for wrong in
            [json!(0), json!(-1), json!(1e300), json!(u64::MAX), json!("many"), json!(999), json!([1])]
        {
            let entry = json!({"id": "m", "context_length": wrong});
            assert_eq!(listed(entry), ModelFacts::default(), "{wrong}");
            let properties = json!({"default_generation_settings": {"n_ctx": wrong}});
            assert_eq!(ModelFacts::of_llama_cpp(&properties), ModelFacts::default(), "{wrong}");
            let shown = json!({"model_info": {"llama.context_length": wrong}, "parameters": "num_ctx 0"});
            assert_eq!(ModelFacts::of_ollama(&shown), ModelFacts::default(), "{wrong}");
        }
        // A sensible one beside it counts.
        assert_eq!(listed(json!({"id": "m", "context_length": 0, "max_model_len": 8_192})), window(8_192));
        for other in [json!(null), json!("text"), json!(7), json!([]), json!({"data": {}})] {
            assert_eq!(ModelFacts::of_list(&other, "m"), ModelFacts::default());
            assert_eq!(ModelFacts::of_llama_cpp(&other), ModelFacts::default());
            assert_eq!(ModelFacts::of_ollama(&other), ModelFacts::default());
        }
    }

    #[test]
    fn what_ollama_uses_precedes_what_the_model_could() {
        let info = json!({"general.architecture": "qwen3", "qwen3.context_length": 40_960});
        let shown = |parameters: &str| json!({"model_info": info.clone(), "parameters": parameters});
        assert_eq!(ModelFacts::of_ollama(&shown("")), window(40_960));
        let set = shown("stop    \"<|im_end|>\"\nnum_ctx                        16384\ntemperature 0.6");
        assert_eq!(ModelFacts::of_ollama(&set), window(16_384));
    }
}
