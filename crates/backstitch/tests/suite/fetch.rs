//! The tool that reads pages, with servers on loopback.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use backstitch::testing::{ToolTest, ToolTestReport};
use backstitch::tools::Fetch;
use serde_json::{Value, json};

/// A server that answers each path with bytes of its own.
struct Pages {
    address: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Pages {
    fn new(answer: impl Fn(&str, &mut TcpStream) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let asked: Arc<Mutex<Vec<String>>> = Arc::default();
        let (requests, answer) = (asked.clone(), Arc::new(answer));
        // The thread ends with the test.
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { return };
                let (requests, answer) = (requests.clone(), answer.clone());
                std::thread::spawn(move || {
                    let mut head = Vec::new();
                    let mut byte = [0];
                    while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|read| read == 1) {
                        head.push(byte[0]);
                    }
                    let head = String::from_utf8_lossy(&head).into_owned();
                    let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
                    requests.lock().unwrap().push(head);
                    answer(&path, &mut stream);
                });
            }
        });
        Self { address, asked }
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    fn fetch(&self) -> Fetch {
        Fetch { private_hosts: vec![self.address.clone()], ..Fetch::default() }
    }

    async fn read(&self, path: &str) -> ToolTestReport {
        call(self.fetch(), json!({"url": format!("http://{}{path}", self.address)})).await
    }
}

async fn call(fetch: Fetch, arguments: Value) -> ToolTestReport {
    ToolTest::new().call(fetch.tool(), arguments).await.unwrap()
}

fn respond(stream: &mut TcpStream, status: &str, headers: &str, body: &[u8]) {
    let head =
        format!("HTTP/1.1 {status}\r\n{headers}content-length: {}\r\nconnection: close\r\n\r\n", body.len());
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body));
}

fn value(report: &ToolTestReport) -> Value {
    assert!(report.succeeded(), "{}", report.text());
    serde_json::from_str(&report.text()).unwrap()
}

#[tokio::test]
async fn a_page_becomes_markdown_and_nothing_else_is_sent() {
    let pages = Pages::new(|path, stream| match path {
        "/" => {
            let body = "<title>Seams</title><h1>Seams</h1><p>See <a href='hem'>the hem</a>.</p>";
            let headers = "content-type: text/html; charset=utf-8\r\nset-cookie: a=b\r\n";
            respond(stream, "200 OK", headers, body.as_bytes());
        }
        "/data" => respond(stream, "200 OK", "content-type: application/json\r\n", b"[1,2]"),
        "/image" => respond(stream, "200 OK", "content-type: image/png\r\n", b"\x89PNG"),
        _ => respond(stream, "404 Not Found", "content-type: text/plain\r\n", b"there is\nno such seam"),
    });
    let page = value(&pages.read("/").await);
    assert_eq!(page["title"], "Seams");
    let link = format!("http://{}/hem", pages.address);
    assert_eq!(page["text"], format!("# Seams\n\nSee [the hem]({link}).\n"));
    assert_eq!(value(&pages.read("/data").await)["text"], "[\n  1,\n  2\n]");
    let image = value(&pages.read("/image").await);
    assert_eq!(image["text"], Value::Null);
    assert!(image["note"].as_str().unwrap().contains("image/png of 4 bytes"), "{image}");
    let missing = pages.read("/missing").await;
    assert!(!missing.succeeded());
    assert!(missing.text().contains("404 Not Found: there is no such seam"), "{}", missing.text());
    for head in pages.asked() {
        let lower = head.to_lowercase();
        assert!(head.starts_with("GET ") && lower.contains("user-agent: backstitch/"), "{head}");
        for secret in ["cookie", "authorization", "referer", "accept-encoding"] {
            assert!(!lower.contains(&format!("{secret}:")), "{head}");
        }
    }
}

#[tokio::test]
async fn a_redirect_to_another_host_is_returned_and_not_followed() {
    let other = Pages::new(|_, stream| respond(stream, "200 OK", "content-type: text/plain\r\n", b"other"));
    let elsewhere = other.address.clone();
    let pages = Pages::new(move |path, stream| {
        let to = match path {
            "/near" => "/page".to_owned(),
            "/far" => format!("http://{elsewhere}/x"),
            "/inside" => "http://169.254.169.254/latest".to_owned(),
            "/user" => "http://user:secret@example.com/".to_owned(),
            "/file" => "file:///etc/passwd".to_owned(),
            "/loop" => "/loop".to_owned(),
            _ => return respond(stream, "200 OK", "content-type: text/plain\r\n", b"near"),
        };
        respond(stream, "302 Found", &format!("location: {to}\r\n"), b"");
    });
    let near = value(&pages.read("/near").await);
    assert_eq!(
        (near["text"].as_str(), near["url"].as_str().unwrap().ends_with("/page")),
        (Some("near"), true)
    );
    let far = value(&pages.read("/far").await);
    assert_eq!(far["redirect"], format!("http://{}/x", other.address));
    assert!(far["note"].as_str().unwrap().contains("another host"), "{far}");
    assert_eq!(value(&pages.read("/inside").await)["redirect"], "http://169.254.169.254/latest");
    for (path, part) in [
        ("/user", "without a usable address"),
        ("/file", "without a usable address"),
        ("/loop", "more than 5 times"),
    ] {
        let refused = pages.read(path).await;
        assert!(!refused.succeeded() && refused.text().contains(part), "{path}: {}", refused.text());
    }
    assert!(other.asked().is_empty());
}

#[tokio::test]
async fn private_addresses_are_refused_before_a_connection() {
    let pages = Pages::new(|_, stream| respond(stream, "200 OK", "", b"secret"));
    let port = pages.address.rsplit(':').next().unwrap().to_owned();
    for url in [
        "http://127.0.0.1/".to_owned(),
        "http://localhost/".to_owned(),
        "http://localhost:8080/".to_owned(),
        "http://[::1]/".to_owned(),
        "http://[::ffff:127.0.0.1]:8080/".to_owned(),
        "http://2130706433/".to_owned(),
        "http://169.254.169.254/latest/meta-data/".to_owned(),
    ] {
        let refused = call(Fetch::default(), json!({"url": url})).await;
        assert!(
            !refused.succeeded() && refused.text().contains("is not public"),
            "{url}: {}",
            refused.text()
        );
    }
    for (url, part) in [
        (format!("http://127.0.0.1:{port}/"), "is not one of web pages"),
        (format!("http://user:pass@{}/", pages.address), "a user name or a password"),
        ("ftp://example.com/".to_owned(), "only http and https"),
        ("example.com".to_owned(), "not an absolute address"),
    ] {
        let refused = call(Fetch::default(), json!({"url": url})).await;
        assert!(!refused.succeeded() && refused.text().contains(part), "{url}: {}", refused.text());
    }
    // One allowed host does not open another name of the same address.
    let other = call(pages.fetch(), json!({"url": format!("http://localhost:{port}/")})).await;
    assert!(!other.succeeded(), "{}", other.text());
    assert!(pages.asked().is_empty());
}

#[tokio::test]
async fn answers_have_limits() {
    let pages = Pages::new(|path, stream| match path {
        "/large" => respond(stream, "200 OK", "content-type: text/plain\r\n", &b"seam\n".repeat(20_000)),
        "/headers" => {
            let headers = format!("x-a: {}\r\n", "a".repeat(200_000));
            respond(stream, "200 OK", &headers, b"x");
        }
        "/many" => {
            let headers: String = (0..5_000).map(|number| format!("x-{number}: a\r\n")).collect();
            respond(stream, "200 OK", &headers, b"x");
        }
        "/packed" => {
            respond(stream, "200 OK", "content-type: text/plain\r\ncontent-encoding: gzip\r\n", b"\x1f\x8b")
        }
        "/silent" => {
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 10\r\n\r\na";
            let _ = stream.write_all(head.as_bytes());
            // Until the other side gives up.
            let _ = stream.read(&mut [0]);
        }
        "/short" => {
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 10\r\n\r\na";
            let _ = stream.write_all(head.as_bytes());
        }
        _ => {
            let _ = stream.write_all(b"\x16\x03\x01 this is not HTTP\r\n\r\n");
        }
    });
    let address = format!("http://{}/large", pages.address);
    let small = Fetch { most_bytes: 60_000, ..pages.fetch() };
    let first = value(&call(small.clone(), json!({"url": address})).await);
    let note = first["note"].as_str().unwrap();
    assert!(note.contains("first 60000 bytes were read") && note.contains("fetch again with from"), "{note}");
    let next = first["next_from"].as_u64().unwrap();
    let second = value(&call(small.clone(), json!({"url": address, "from": next})).await);
    let joined = [first["text"].as_str().unwrap(), second["text"].as_str().unwrap()].concat();
    assert_eq!(joined, "seam\n".repeat(12_000));
    assert_eq!(second["next_from"], Value::Null);
    let beyond = call(small, json!({"url": address, "from": 60_000})).await;
    assert!(!beyond.succeeded() && beyond.text().contains("60000 characters"), "{}", beyond.text());
    for (path, part) in [
        ("/headers", "headers"),
        ("/many", "headers"),
        ("/packed", "gzip"),
        ("/short", "broke off"),
        ("/nonsense", "broke off"),
    ] {
        let refused = pages.read(path).await;
        assert!(!refused.succeeded() && refused.text().contains(part), "{path}: {}", refused.text());
    }
    let hasty = Fetch { timeout: Duration::from_millis(300), ..pages.fetch() };
    let silent = call(hasty, json!({"url": format!("http://{}/silent", pages.address)})).await;
    assert!(!silent.succeeded() && silent.text().contains("was not read within"), "{}", silent.text());
}
