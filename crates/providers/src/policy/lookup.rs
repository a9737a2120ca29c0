//! Asking a server about its models, and one that is not the provider's own about a single model.
//!
//! Such a server knows the window of its model, and some know the price. A few questions are asked in turn until one
//! answer has the window, with the key and the headers of every request, for at most some seconds. No failure is an error:
//! what no answer has is not known. What the server told is remembered while the process runs.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::Duration;

use backstitch_core::digest::Digest;
use serde_json::{Value, json};

use super::{ModelPolicy, address};
use crate::dialects::dialect;
use crate::facts::{ModelFacts, ServedModel};
use crate::transport::{HttpRequest, TransportError};

/// The time for all questions together.
const TOTAL_TIME: Duration = Duration::from_secs(5);

/// The time for one question.
const QUESTION_TIME: Duration = Duration::from_secs(3);

/// The maximum size of an answer, in bytes. The longest lists have about one million.
const LONGEST_ANSWER: usize = 4 * 1024 * 1024;

/// What was told, by address, model, secrets and question.
static KNOWN: LazyLock<Mutex<HashMap<Digest, ModelFacts>>> = LazyLock::new(Mutex::default);

/// What a server is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WantedFacts {
    /// The price, which only lists of models tell.
    Price,
    /// The window, and the price if the same answer has it.
    Window,
}

impl ModelPolicy {
    /// Asks the server of the model for its window and its price. The provider's own address is not asked, nor is any
    /// server if the transport is a recording.
    pub async fn look_up_facts(&self, wanted: WantedFacts) -> ModelFacts {
        let Some(endpoint) = self.target.endpoint.as_deref() else { return ModelFacts::default() };
        let question = format!("{:?}", (self.target.provider, wanted));
        let identity =
            [endpoint, self.target.model.as_str(), question.as_str()].into_iter().chain(self.held_secrets());
        let identity = Digest::of(identity.collect::<Vec<_>>().join("\0").as_bytes());
        let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(facts) = known().get(&identity) {
            return *facts;
        }
        let mut facts = ModelFacts::default();
        let asked = tokio::time::timeout(TOTAL_TIME, self.ask_server(endpoint, wanted, &mut facts)).await;
        match asked {
            Ok(Ok(())) => {
                known().insert(identity, facts);
            }
            Ok(Err(error)) => tracing::debug!(%error, endpoint, "a server does not describe its model"),
            Err(_) => tracing::debug!(endpoint, "a server takes too long to describe its model"),
        }
        facts
    }

    /// Asks the server for its models. The provider's own address is asked too. Fails if there is no list.
    pub async fn list_models(&self) -> Result<Vec<ServedModel>, TransportError> {
        let provider = self.target.provider;
        let base = self.target.endpoint.as_deref().unwrap_or(dialect(provider).address.base);
        let list = self.fetch(address::models(provider, base), "").await?;
        if list.is_null() {
            return Err(TransportError::broken("it does not list its models".to_owned()));
        }
        Ok(ServedModel::all_of_list(&list))
    }

    /// Asks until everything is known. Fails if the server cannot be reached or does not answer, since it would not
    /// answer the next question either.
    async fn ask_server(
        &self,
        endpoint: &str,
        wanted: WantedFacts,
        facts: &mut ModelFacts,
    ) -> Result<(), TransportError> {
        type Reader = fn(&Value, &str) -> ModelFacts;
        let model = &self.target.model;
        let list = self.fetch(address::models(self.target.provider, endpoint), "").await?;
        *facts = ModelFacts::of_list(&list, model);
        let named = json!({ "model": model }).to_string();
        let others: [(&str, &str, Reader); 3] = [
            ("/props", "", |properties, _| ModelFacts::of_llama_cpp(properties)),
            ("/api/show", &named, |shown, _| ModelFacts::of_ollama(shown)),
            ("/api/v0/models", "", ModelFacts::of_list),
        ];
        for (path, body, read) in others {
            if wanted == WantedFacts::Price || facts.window.is_some() {
                break;
            }
            let answer = self.fetch(address::beside(endpoint, path), body).await?;
            facts.window = read(&answer, model).window;
        }
        Ok(())
    }

    /// Returns the JSON that a server answers; `null` if it answers anything else.
    async fn fetch(&self, url: String, body: &str) -> Result<Value, TransportError> {
        let answer = tokio::time::timeout(QUESTION_TIME, self.read_description(url, body)).await;
        let late = || TransportError::broken(format!("no answer within {} s", QUESTION_TIME.as_secs()));
        answer.map_err(|_| late())?
    }

    async fn read_description(&self, url: String, body: &str) -> Result<Value, TransportError> {
        let mut headers = address::headers(self.target.provider, false);
        headers.retain(|(name, _)| *name != "content-type" || !body.is_empty());
        let request = HttpRequest {
            url: url.clone(),
            headers,
            secret: self.key.as_ref().map(|key| address::secret(&self.target, key)),
            custom: self.headers.to_vec(),
            body: body.into(),
        };
        let mut response = self.transport.look_up(request).await?;
        let status = response.status;
        if !(200..300).contains(&status) {
            tracing::debug!(%url, status, "a server does not answer a question about its model");
            return Ok(Value::Null);
        }
        let mut bytes = Vec::new();
        while let Some(chunk) = response.body.chunk().await? {
            bytes.extend_from_slice(&chunk);
            if bytes.len() > LONGEST_ANSWER {
                tracing::debug!(%url, "the description of a model is too long");
                return Ok(Value::Null);
            }
        }
        Ok(serde_json::from_slice(&bytes).unwrap_or_else(|error| {
            tracing::debug!(%url, %error, "the description of a model is not JSON");
            Value::Null
        }))
    }
}
