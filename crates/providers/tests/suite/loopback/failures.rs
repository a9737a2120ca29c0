//! Failures, and their kinds.

use std::time::Duration;

use backstitch_providers::Provider;
use serde_json::json;

use super::{ask, fails, model, streamed, whole, words};
use crate::support::server::Served;
use crate::support::wire::{Spoken, overloaded_event, stream_of};

fn spoken() -> Spoken {
    Spoken::text("It rains.").call("call_a", "look", "{\"at\":\"left\"}")
}

#[test]
fn connections_drop_before_the_answer() {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-le";
    for provider in Provider::ALL {
        for (served, what) in
            [(Served::nothing(), "before the head"), (Served::raw(head), "inside of the head")]
        {
            fails(streamed(provider, served.clone()).0, "network", true, what);
            fails(whole(provider, served), "network", true, what);
        }
    }
}

#[test]
fn connections_drop_inside_of_the_answer() {
    for provider in Provider::ALL {
        let text = spoken().streamed(provider);
        let events = spoken().events(provider);
        // The finish reason ends an answer of Chat; some servers omit the mark after it.
        let ends = if provider == Provider::OpenAiChat { 2 } else { 1 };
        let unended = stream_of(&events[..events.len() - ends]);
        for (served, what) in [
            (Served::open_stream(&text[..text.len() / 2], 5), "in the middle"),
            (Served::open_stream(&unended, 50), "before the end"),
            (Served::stream(&unended, 50), "before the end, as if this were all"),
            (Served::closing_stream(&unended), "before the end, by hanging up"),
            (Served::closing_stream(&text[..text.len() / 3]), "inside of an event"),
            (Served::stream("", 1), "with nothing said"),
            (Served::stream(": still there\n\n: still there\n\n", 5), "with nothing but comments"),
        ] {
            let (answer, _) = streamed(provider, served);
            fails(answer, "cut_stream", true, &format!("{provider} {what}"));
        }
        let body = spoken().whole(provider).to_string();
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        let cut = Served::raw(format!("{head}{}", &body[..body.len() / 2]));
        fails(whole(provider, cut), "network", true, "a whole answer that is cut");
    }
}

#[test]
fn deltas_before_a_cut_are_not_an_answer() {
    for provider in Provider::ALL {
        let events = spoken().events(provider);
        let text = stream_of(&events[..events.len() - 2]);
        let (answer, heard) = streamed(provider, Served::open_stream(&text, 5));
        fails(answer, "cut_stream", true, "it was cut");
        assert_eq!(words(&heard), "It rains.", "{provider}: the deltas were emitted nevertheless");
    }
}

#[test]
fn statuses_have_their_kinds() {
    for provider in Provider::ALL {
        for (status, kind, retryable) in [
            (302, "invalid_request", false),
            (400, "invalid_request", false),
            (401, "auth", false),
            (402, "out_of_credit", false),
            (403, "auth", false),
            (404, "invalid_request", false),
            (408, "server", true),
            (413, "context_too_long", false),
            (429, "rate_limited", true),
            (500, "server", true),
            (502, "server", true),
            (503, "overloaded", true),
            (504, "server", true),
            (529, "overloaded", true),
        ] {
            let said = json!({"error": {"message": "no"}}).to_string();
            for (mime, body) in
                [("application/json", said.as_str()), ("text/html", "<html>no</html>"), ("x/y", "")]
            {
                let served = Served::whole(status, mime, &[("location", "http://127.0.0.1:1/")], body);
                let (answer, _) = streamed(provider, served);
                let error = fails(answer, kind, retryable, &format!("{provider} {status} {mime}"));
                assert_eq!(error.retry_after, None);
            }
        }
    }
}

#[test]
fn waits_are_read_in_every_form() {
    let sent = ("date", "Sun, 15 Nov 2026 10:00:00 GMT");
    for provider in Provider::ALL {
        for (headers, wait, retryable) in [
            (vec![("retry-after", "7")], Duration::from_secs(7), true),
            (vec![("retry-after", "0.5")], Duration::from_millis(500), true),
            (vec![("retry-after-ms", "1500"), ("retry-after", "9")], Duration::from_millis(1500), true),
            (vec![sent, ("retry-after", "Sun, 15 Nov 2026 10:00:42 GMT")], Duration::from_secs(42), true),
            (vec![sent, ("retry-after", "Sun, 15 Nov 2026 09:00:00 GMT")], Duration::ZERO, true),
            (vec![("retry-after", "Sun, 15 Nov 1998 09:00:00 GMT")], Duration::ZERO, true),
            // The older forms of dates.
            (vec![sent, ("retry-after", "Sunday, 15-Nov-26 10:00:42 GMT")], Duration::from_secs(42), true),
            (vec![sent, ("retry-after", "Sun Nov 15 10:00:42 2026")], Duration::from_secs(42), true),
            // A wait of an hour is reported instead of retried.
            (vec![sent, ("retry-after", "Sun, 15 Nov 2026 11:00:00 GMT")], Duration::from_secs(3600), false),
            (vec![("retry-after", "3"), ("x-should-retry", "false")], Duration::from_secs(3), false),
        ] {
            let (answer, _) = streamed(provider, Served::whole(429, "application/json", &headers, "{}"));
            let error = fails(answer, "rate_limited", retryable, &format!("{provider} {headers:?}"));
            assert_eq!(error.retry_after, Some(wait), "{provider} {headers:?}");
        }
        let unread = Served::whole(429, "application/json", &[("retry-after", "soon")], "{}");
        assert_eq!(streamed(provider, unread).0.unwrap_err().retry_after, None);
    }
}

#[test]
fn malformed_answers_are_errors_and_never_guesses() {
    for provider in Provider::ALL {
        let mut events = spoken().events(provider);
        let first = stream_of(&events[..1]);
        for (text, what) in [
            (format!("{first}data: {{\"nonsense\n\n"), "an event that is not JSON"),
            (format!("{first}data: {}\n\n", "[".repeat(5_000)), "an event that nests too deeply"),
        ] {
            fails(streamed(provider, Served::stream(&text, 9)).0, "malformed", true, what);
        }
        // Unknown events are ignored; the answer is still cut off.
        let odd = format!("{first}data: 5\n\ndata: null\n\ndata: [1]\n\n");
        fails(
            streamed(provider, Served::stream(&odd, 9)).0,
            "cut_stream",
            true,
            "events that are not objects",
        );
        for (mime, body) in [
            ("application/json", ""),
            ("application/json", "{}{"),
            ("application/json", "[]"),
            ("application/json", "{\"content\": 5, \"output\": 5, \"choices\": 5, \"candidates\": 5}"),
            ("text/html", "<html>Welcome to the hotel</html>"),
        ] {
            let served = Served::whole(200, mime, &[], body);
            fails(whole(provider, served.clone()), "malformed", true, &format!("{provider} {body}"));
            fails(streamed(provider, served).0, "malformed", true, &format!("{provider} {body}"));
        }
        events.truncate(1);
    }
}

#[test]
fn errors_inside_of_a_stream_are_what_they_say() {
    for provider in Provider::ALL {
        let mut events = spoken().events(provider);
        let ends = if provider == Provider::OpenAiChat { 2 } else { 1 };
        events.truncate(events.len() - ends);
        events.push(overloaded_event(provider));
        let (answer, heard) = streamed(provider, Served::stream(&stream_of(&events), 3));
        let error = fails(answer, "overloaded", true, &format!("{provider}: an error event"));
        assert_eq!(error.message, "busy");
        assert_eq!(words(&heard), "It rains.", "{provider}");
        // Some servers send the error without the form of an event.
        let mut text = stream_of(&events[..events.len() - 1]);
        text.push_str(&serde_json::to_string_pretty(&overloaded_event(Provider::Gemini)).unwrap());
        let (answer, _) = streamed(provider, Served::stream(&text, 3));
        let error = answer.unwrap_err();
        assert!(error.retryable, "{provider}: {error}");
        assert!(["overloaded", "server"].contains(&error.kind.as_str()), "{provider}: {error}");
    }
}

#[test]
fn a_conversation_that_is_too_long_has_its_own_kind() {
    for provider in Provider::ALL {
        let (status, body) = match provider {
            Provider::OpenAiChat | Provider::OpenAiResponses => (
                400,
                json!({"error": {"message": "too long", "type": "invalid_request_error", "code": "context_length_exceeded"}}),
            ),
            Provider::Anthropic => (
                400,
                json!({"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too long: 9 tokens > 8 maximum"}}),
            ),
            Provider::Gemini => (
                400,
                json!({"error": {"code": 400, "status": "INVALID_ARGUMENT", "message": "The input token count (9) exceeds the maximum number of tokens allowed (8)."}}),
            ),
        };
        let served = Served::whole(status, "application/json", &[], &body.to_string());
        fails(streamed(provider, served).0, "context_too_long", false, &provider.to_string());
    }
}

#[test]
fn an_unreachable_server_is_an_error_of_the_network() {
    // It never listens, and keeps its port from other programs.
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = format!("http://{}", socket.local_addr().unwrap());
    for provider in Provider::ALL {
        let error = fails(ask(&model(provider, &address)).0, "network", true, "no server");
        let server = address.trim_end_matches('/');
        assert!(
            error.message.contains(&format!("{server} cannot be reached: Connection refused")),
            "{error}"
        );
    }
}

#[test]
fn the_text_of_a_server_is_quoted_when_it_is_no_answer() {
    for provider in Provider::ALL {
        let page = "<html>\n  <h1>Welcome to the hotel</h1>\n</html>";
        for served in
            [Served::whole(200, "text/html", &[], page), Served::whole(200, "text/event-stream", &[], page)]
        {
            let error = fails(streamed(provider, served).0, "malformed", true, "a page");
            let text = error.to_string();
            assert!(text.contains("status 200") && text.contains("<h1>Welcome to the hotel</h1>"), "{text}");
            assert!(!text.contains('\n'), "{text}");
        }
        let long = format!("<html>{}", "x".repeat(5_000));
        let error =
            fails(whole(provider, Served::whole(200, "text/html", &[], &long)), "malformed", true, "long");
        assert!(error.to_string().len() < 1_000, "{error}");

        // An error with a successful status, in the forms that servers use.
        for body in [
            json!({"error": {"message": "no such model"}}),
            json!({"error": "no such model"}),
            json!([{"error": {"message": "no such model"}}]),
        ] {
            for kind in ["application/json", "text/event-stream"] {
                let served = Served::whole(200, kind, &[], &body.to_string());
                let error = fails(streamed(provider, served).0, "server", true, &body.to_string());
                assert_eq!(error.message, "no such model", "{provider}");
            }
        }
        let moved = [("location", "https://example.org/v2")];
        for body in ["", "<html>moved</html>"] {
            let served = Served::whole(302, "text/html", &moved, body);
            let error = fails(streamed(provider, served).0, "invalid_request", false, "a redirect");
            let text = error.to_string();
            assert!(text.contains("302") && text.contains("https://example.org/v2"), "{provider}: {text}");
        }
        let served = Served::whole(502, "text/html", &[], "<html>bad gateway</html>");
        let text = fails(streamed(provider, served).0, "server", true, "a gateway").to_string();
        assert!(text.contains("502") && text.contains("bad gateway"), "{provider}: {text}");
        let served = Served::whole(500, "text/html", &[], "");
        let text = fails(streamed(provider, served).0, "server", true, "nothing").to_string();
        assert!(text.contains("HTTP status 500 without a body"), "{provider}: {text}");
    }
}

#[test]
fn an_error_names_the_wait() {
    for provider in Provider::ALL {
        let served = Served::whole(
            429,
            "application/json",
            &[("retry-after", "600")],
            "{\"error\": {\"message\": \"busy\"}}",
        );
        let error = fails(streamed(provider, served).0, "rate_limited", false, "a long wait");
        assert_eq!(error.retry_after, Some(std::time::Duration::from_secs(600)));
        let source = error.source.as_ref().unwrap().to_string();
        for text in [error.to_string(), source] {
            assert!(text.ends_with("busy; it asks to wait 600 s before a retry"), "{text}");
        }
    }
}

#[test]
fn a_server_that_says_nothing_is_given_up_after_the_silence_that_was_set() {
    use std::net::TcpListener;
    use std::sync::Arc;
    use std::time::Duration;

    use backstitch_core::message::PolicyName;
    use backstitch_providers::{Http, ModelPolicy, ModelTarget};

    // It accepts connections and never reads or answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", silent.local_addr().unwrap());
    let http = Arc::new(Http::with_silence(Duration::from_millis(200)).unwrap());
    for provider in Provider::ALL {
        let target = ModelTarget::new(provider, "m").at(&address);
        let policy = ModelPolicy::new(PolicyName::new("model").unwrap(), target, None, http.clone());
        let error = fails(ask(&policy).0, "network", true, "silence");
        assert!(error.message.contains("sent nothing for 0.2 s"), "{error}");
    }
}
