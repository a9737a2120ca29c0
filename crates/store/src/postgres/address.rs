//! Addresses of stores in a server: `postgres://USER:PASSWORD@HOST:PORT/DATABASE?schema=NAME`.
//!
//! The address is that of PostgreSQL's own programs, with the schema of the store as a further parameter. An address is shown without its password, and none
//! of its forms for people or for logs has it.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};

/// The schema of a store whose address names none.
const SCHEMA: &str = "backstitch";

/// Longest name of a schema: the names of its views and its reader are longer, and PostgreSQL cuts names at 63 bytes.
const LONGEST: usize = 50;

/// Parameters that connections know. The name of any other may be a part of a password, and is not repeated.
const KNOWN: [&str; 17] = [
    "user",
    "password",
    "dbname",
    "application_name",
    "sslnegotiation",
    "host",
    "hostaddr",
    "port",
    "connect_timeout",
    "tcp_user_timeout",
    "keepalives",
    "keepalives_idle",
    "keepalives_interval",
    "keepalives_retries",
    "target_session_attrs",
    "channel_binding",
    "load_balance_hosts",
];

/// What the address cannot express.
const CONNECT: Duration = Duration::from_secs(10);
const UNANSWERED: Duration = Duration::from_secs(10);
const IDLE: Duration = Duration::from_secs(10);
const INTERVAL: Duration = Duration::from_secs(3);

/// How a connection is encrypted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Encryption {
    /// Not at all.
    Plain,
    /// As the server wishes, without a check of its certificate.
    IfOffered,
    /// Always, and the certificate has to be that of the host: by the authorities of the system, or by those in a file.
    Verified(Option<PathBuf>),
}

/// The address of a store in a PostgreSQL server.
#[derive(Clone, PartialEq, Eq)]
pub struct PostgresAddress {
    config: Box<Config>,
    schema: String,
    encryption: Encryption,
}

/// The address cannot be used. The text repeats nothing of it but names of parameters, since it may hold a password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the address of the store is not valid: {reason}")]
pub struct InvalidAddress {
    /// What is wrong with it.
    pub reason: String,
}

fn invalid(reason: impl Into<String>) -> InvalidAddress {
    InvalidAddress { reason: reason.into() }
}

impl PostgresAddress {
    /// Reads an address that begins with `postgres://` or `postgresql://`.
    pub fn parse(text: &str) -> Result<Self, InvalidAddress> {
        // A password may have a question mark.
        let credentials = text.find('@').map_or(0, |at| at + 1);
        let parameters_at = text[credentials..].find('?').map_or(text.len(), |at| credentials + at);
        let (place, parameters) = (&text[..parameters_at], text[parameters_at..].trim_start_matches('?'));
        // What follows the first of them would be shown as a host or a database, and is a part of the password.
        if place[credentials..].contains('@') {
            return Err(invalid("it has more than one `@`: write one of the user or the password as `%40`"));
        }
        if !(place.starts_with("postgres://") || place.starts_with("postgresql://")) {
            return Err(invalid("it does not begin with `postgres://`"));
        }
        let (mut schema, mut mode, mut roots) = (SCHEMA.to_owned(), None, None);
        let mut rest: Vec<&str> = Vec::new();
        for parameter in parameters.split('&').filter(|parameter| !parameter.is_empty()) {
            match parameter.split_once('=') {
                Some(("schema", name)) => schema = name.to_owned(),
                Some(("sslmode", word)) => mode = Some(word.to_owned()),
                Some(("sslrootcert", path)) => roots = Some(PathBuf::from(decoded(path)?)),
                Some(("options", _)) => {
                    return Err(invalid(
                        "`options` sets the state of a connection, which a pooler does not keep",
                    ));
                }
                Some((name, _)) if !KNOWN.contains(&name) => {
                    return Err(invalid("it has an unknown parameter"));
                }
                _ => rest.push(parameter),
            }
        }
        check_schema(&schema)?;
        let url = if rest.is_empty() { place.to_owned() } else { format!("{place}?{}", rest.join("&")) };
        let mut config: Config = url.parse().map_err(|error| invalid(cause_of(&error)))?;
        if config.get_hosts().is_empty() {
            return Err(invalid("it names no host"));
        }
        let is_local = config.get_hosts().iter().all(is_local);
        let encryption = match (mode.as_deref(), roots) {
            (Some("disable"), _) => Encryption::Plain,
            (Some("prefer" | "allow"), _) => Encryption::IfOffered,
            (Some("require" | "verify-ca" | "verify-full"), roots) => Encryption::Verified(roots),
            (None, Some(roots)) => Encryption::Verified(Some(roots)),
            (None, None) if is_local => Encryption::Plain,
            (None, None) => Encryption::Verified(None),
            (Some(_), _) => return Err(invalid("`sslmode` is disable, prefer, require or verify-full")),
        };
        config.ssl_mode(match encryption {
            Encryption::Plain => SslMode::Disable,
            Encryption::IfOffered => SslMode::Prefer,
            Encryption::Verified(_) => SslMode::Require,
        });
        config.application_name("backstitch").keepalives(true).keepalives_idle(IDLE);
        config.keepalives_interval(INTERVAL).keepalives_retries(3).tcp_user_timeout(UNANSWERED);
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT);
        }
        Ok(Self { config: Box::new(config), schema, encryption })
    }

    /// Sets the password, unless the address has one.
    #[must_use]
    pub fn with_password(mut self, password: &str) -> Self {
        if self.config.get_password().is_none() {
            self.config.password(password);
        }
        self
    }

    /// Returns whether the address has a password.
    pub fn has_password(&self) -> bool {
        self.config.get_password().is_some()
    }

    /// Returns the schema of the store.
    pub fn schema(&self) -> &str {
        &self.schema
    }

    pub(super) fn encryption(&self) -> &Encryption {
        &self.encryption
    }

    /// Settings of connections. A store for writing asks for a server that can write, which a standby cannot.
    pub(super) fn config(&self, is_for_writing: bool) -> Config {
        let mut config = (*self.config).clone();
        if is_for_writing && config.get_hosts().len() > 1 {
            config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        }
        config
    }
}

fn check_schema(name: &str) -> Result<(), InvalidAddress> {
    let is_first = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
    let is_valid = name.len() <= LONGEST
        && name.bytes().next().is_some_and(is_first)
        && name.bytes().all(|byte| is_first(byte) || byte.is_ascii_digit())
        && !name.starts_with("pg_");
    match is_valid {
        true => Ok(()),
        false => Err(invalid(format!(
            "`schema` has 1 to {LONGEST} small letters, digits and underscores, and does not begin with `pg_` or a digit"
        ))),
    }
}

/// Returns whether a host is this machine.
fn is_local(host: &Host) -> bool {
    match host {
        Host::Tcp(name) => {
            name == "localhost" || name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
        }
        #[cfg(unix)]
        Host::Unix(_) => true,
    }
}

/// Decodes `%XX`.
fn decoded(text: &str) -> Result<String, InvalidAddress> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..2).filter(|_| *first == b'%').and_then(|digits| str::from_utf8(digits).ok());
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &after[2..] } else { after };
    }
    String::from_utf8(bytes).map_err(|_| invalid("a parameter is not text"))
}

/// The reason of an error, which names parameters and never their values.
fn cause_of(error: &tokio_postgres::Error) -> String {
    let cause = std::error::Error::source(error).map(ToString::to_string);
    cause.unwrap_or_else(|| "it cannot be read".to_owned())
}

/// Escapes what would end a part of an address.
fn escaped(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                shown.push(char::from(byte))
            }
            other => shown.push_str(&format!("%{other:02X}")),
        }
    }
    shown
}

impl fmt::Display for PostgresAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("postgres://")?;
        if let Some(user) = self.config.get_user() {
            write!(formatter, "{}@", escaped(user))?;
        }
        let ports = self.config.get_ports();
        for (index, host) in self.config.get_hosts().iter().enumerate() {
            if index > 0 {
                formatter.write_str(",")?;
            }
            match host {
                Host::Tcp(name) if name.contains(':') => write!(formatter, "[{name}]")?,
                Host::Tcp(name) => formatter.write_str(&escaped(name))?,
                #[cfg(unix)]
                Host::Unix(path) => formatter.write_str(&escaped(&path.to_string_lossy()))?,
            }
            if let Some(port) = ports.get(index).or(ports.first()).filter(|port| **port != 5432) {
                write!(formatter, ":{port}")?;
            }
        }
        if let Some(database) = self.config.get_dbname() {
            write!(formatter, "/{}", escaped(database))?;
        }
        let mut separator = '?';
        let mut parameter = |formatter: &mut fmt::Formatter<'_>, name: &str, value: &str| {
            let written = write!(formatter, "{separator}{name}={value}");
            separator = '&';
            written
        };
        if self.schema != SCHEMA {
            parameter(formatter, "schema", &self.schema)?;
        }
        let is_local = self.config.get_hosts().iter().all(is_local);
        match &self.encryption {
            Encryption::Plain if !is_local => parameter(formatter, "sslmode", "disable"),
            Encryption::IfOffered => parameter(formatter, "sslmode", "prefer"),
            Encryption::Verified(None) if is_local => parameter(formatter, "sslmode", "require"),
            Encryption::Verified(Some(path)) => {
                parameter(formatter, "sslrootcert", &escaped(&path.to_string_lossy()))
            }
            _ => Ok(()),
        }
    }
}

impl fmt::Debug for PostgresAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "PostgresAddress({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        PostgresAddress::parse(text).unwrap().to_string()
    }

    #[test]
    fn an_address_is_shown_without_its_password() {
        for (text, expected) in [
            ("postgres://me:secret@db.example/sessions", "postgres://me@db.example/sessions"),
            ("postgresql://me:secret@db:6432/a%20b?schema=x_1", "postgres://me@db:6432/a%20b?schema=x_1"),
            ("postgres://localhost/a?password=secret", "postgres://localhost/a"),
            ("postgres://me:secret@%2Frun%2Fpg/a", "postgres://me@%2Frun%2Fpg/a"),
            ("postgres://a:1,b:2/s?sslmode=prefer", "postgres://a:1,b:2/s?sslmode=prefer"),
            ("postgres://[::1]:7/s", "postgres://[::1]:7/s"),
        ] {
            let address = PostgresAddress::parse(text).unwrap();
            assert_eq!(address.to_string(), expected, "{text}");
            assert!(!format!("{address:?} {address}").contains("secret"), "{address:?}");
            assert_eq!(shown(&address.to_string()), expected, "what is shown names the same store");
        }
    }

    #[test]
    fn what_cannot_be_used_is_refused_without_repeating_it() {
        for text in [
            "postgres://me:secret@h/d?schema=A",
            "postgres://me:secret@h/d?schema=",
            "postgres://me:secret@h/d?schema=pg_x",
            "postgres://me:secret@h/d?schema=a%22",
            "postgres://me:secret@h/d?sslmode=no",
            "postgres://me:secret@h/d?secret=1",
            "postgres://me:secret@h:port/d",
            "postgres://me:secret@h/d?options=-c%20x",
            "postgres:///d?user=secret",
            "mysql://me:secret@h/d",
        ] {
            let error = PostgresAddress::parse(text).unwrap_err();
            assert!(!format!("{error} {error:?}").contains("secret"), "{text}: {error}");
        }
    }

    /// Passwords that should have been escaped.
    #[test]
    fn no_part_of_a_password_with_special_characters_is_shown() {
        for text in [
            "postgres://me:pass@secret@db.example/sessions",
            "postgres://me:pass@secret/secret@db.example/sessions",
            "postgres://me:pass?secret=1@db.example/sessions",
            "postgres://me:pass?secret&secret=2@db.example/sessions?schema=x",
            "postgres://me:pass/secret@db.example/sessions",
            "postgres://me:pass#secret@db.example/sessions",
            "postgres://me:pass:secret@db.example/sessions",
            "postgres://me:pass%secret@db.example/sessions",
            "postgres://db.example/sessions?secret=x",
        ] {
            match PostgresAddress::parse(text) {
                Ok(address) => {
                    assert!(!format!("{address} {address:?}").contains("secret"), "{text}: {address}");
                    assert!(
                        address.to_string().starts_with("postgres://me@db.example/sessions"),
                        "{address}"
                    );
                }
                Err(error) => assert!(!format!("{error} {error:?}").contains("secret"), "{text}: {error}"),
            }
        }
        let address =
            PostgresAddress::parse("postgres://me:a?b@db.example/sessions?sslmode=disable&schema=x");
        let address = address.unwrap();
        assert_eq!((address.schema(), address.encryption()), ("x", &Encryption::Plain));
    }

    #[test]
    fn other_machines_are_reached_with_a_verified_certificate() {
        let encryption = |text: &str| PostgresAddress::parse(text).unwrap().encryption.clone();
        assert_eq!(encryption("postgres://localhost/d"), Encryption::Plain);
        assert_eq!(encryption("postgres://127.0.0.1/d"), Encryption::Plain);
        assert_eq!(encryption("postgres://%2Ftmp/d"), Encryption::Plain);
        assert_eq!(encryption("postgres://db/d"), Encryption::Verified(None));
        assert_eq!(encryption("postgres://db/d?sslmode=disable"), Encryption::Plain);
        assert_eq!(encryption("postgres://db/d?sslmode=prefer"), Encryption::IfOffered);
        let roots = Encryption::Verified(Some("/a b/ca.pem".into()));
        assert_eq!(encryption("postgres://db/d?sslrootcert=%2Fa%20b/ca.pem"), roots);
    }
}
