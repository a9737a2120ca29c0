//! Headers of requests to models, for gateways.
//!
//! A value is a text in which `${VARIABLE}` stands for the value of an environment variable. Definitions are recorded,
//! so a header whose name says that it holds a secret has to take it from a variable. Values of variables are neither
//! recorded nor shown.

use std::collections::BTreeMap;

use backstitch_providers::RequestHeader;

use super::build::BuildOptions;
use super::error::Problem;
use super::mcp::value_of;

/// Headers of requests, by name.
pub type HeaderTexts = BTreeMap<String, String>;

/// A piece of a value.
enum Piece<'a> {
    Text(&'a str),
    Variable(&'a str),
}

/// Splits a value into text and variables; `None` if a variable is not written as one.
fn pieces(value: &str) -> Option<Vec<Piece<'_>>> {
    let mut pieces = Vec::new();
    let mut rest = value;
    while let Some((text, after)) = rest.split_once("${") {
        let (variable, behind) = after.split_once('}')?;
        if !is_variable(variable) {
            return None;
        }
        pieces.extend([Piece::Text(text), Piece::Variable(variable)]);
        rest = behind;
    }
    pieces.push(Piece::Text(rest));
    Some(pieces)
}

/// Whether a text can name an environment variable. Capitals only: a key that was written in place of a name is noticed.
pub(super) fn is_variable(name: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    !name.is_empty() && name.bytes().all(is_letter) && !name.as_bytes()[0].is_ascii_digit()
}

/// Whether the name of a header says that its value is a secret.
fn names_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.contains("auth")
        || ["key", "token", "secret", "password", "cookie"].iter().any(|end| name.ends_with(end))
}

/// Refuses headers that a request cannot have. `key` is the path of the table.
pub(super) fn check(headers: &HeaderTexts, key: &[String]) -> Result<(), Problem> {
    for (name, value) in headers {
        let wrong = |message: &str| Problem::new([name.as_str()], message).below(key);
        // The text may be a secret, so it is not repeated.
        let Some(pieces) = pieces(value) else {
            return Err(wrong("write a variable as ${NAME}, in capitals, digits and `_`"));
        };
        if names_secret(name) && !pieces.iter().any(|piece| matches!(piece, Piece::Variable(_))) {
            let message = "definitions are recorded, so a secret does not belong here: take it from the environment, such as \"Bearer ${GATEWAY_TOKEN}\"";
            return Err(wrong(message));
        }
        let without_variables = RequestHeader::new(name, &value.replace("${", "").replace('}', ""));
        without_variables.map_err(|error| wrong(&error.to_string()))?;
    }
    Ok(())
}

/// Returns the variables that headers refer to.
pub(super) fn variables(headers: &HeaderTexts) -> impl Iterator<Item = &str> {
    headers.values().filter_map(|value| pieces(value)).flatten().filter_map(|piece| match piece {
        Piece::Variable(name) => Some(name),
        Piece::Text(_) => None,
    })
}

/// Returns the headers with the values of their variables. `key` is the path of the table.
pub(super) fn resolved(
    headers: &HeaderTexts,
    key: &[String],
    options: &BuildOptions<'_>,
) -> Result<Vec<RequestHeader>, Problem> {
    check(headers, key)?;
    headers
        .iter()
        .map(|(name, text)| {
            let wrong = |message: String| Problem::new([name.as_str()], message).below(key);
            let (mut value, mut secrets) = (String::new(), Vec::new());
            for piece in pieces(text).into_iter().flatten() {
                match piece {
                    Piece::Text(text) => value.push_str(text),
                    Piece::Variable(variable) => {
                        let unset = || wrong(format!("the environment variable {variable} is not set"));
                        let secret = value_of(options, variable).ok_or_else(unset)?.trim().to_owned();
                        value.push_str(&secret);
                        secrets.push(secret);
                    }
                }
            }
            let header = RequestHeader::new(name, &value).map_err(|error| wrong(error.to_string()))?;
            Ok(secrets.into_iter().fold(header, RequestHeader::hiding))
        })
        .collect()
}
