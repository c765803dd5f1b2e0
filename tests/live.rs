//! The live server: what it does when many ask, when it is killed, when it is attacked, and when the
//! primary engine is there, away, or fails.

#![allow(clippy::unwrap_used)]

#[path = "../crates/llm/tests/support/mod.rs"]
mod llama;
mod support;

use std::collections::HashSet;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use llama::LlamaServer;
use serde_json::Value;
use support::{Archive, Server, models, stderr};

/// An archive that has been read and published, with these lines in its pipeline file. It is made once
/// and copied: what the small model says in the run is not what is tested here.
fn published(models: &std::path::Path, section: &str) -> Archive {
    static ORIGINAL: std::sync::OnceLock<Archive> = std::sync::OnceLock::new();
    let original = ORIGINAL.get_or_init(|| {
        let archive = Archive::new(models, 0.0);
        let run = archive.florilegium(&["run", &archive.pipeline().display().to_string()]);
        assert!(run.status.success(), "{}", stderr(&run));
        archive
    });
    let copy = Archive { folder: tempfile::tempdir().unwrap() };
    let from = original.folder.path().join(".");
    let mut cp = std::process::Command::new("cp");
    assert!(cp.arg("-a").arg(from).arg(copy.folder.path()).status().unwrap().success());
    copy.add(section);
    copy
}

/// Asks; the status, and the reply.
fn ask(server: &Server, question: &str, wait: u64) -> (u16, Value) {
    let question = question.replace(' ', "%20").replace('?', "%3F");
    let (status, body) = server.get(&format!("/api/ask?q={question}&lang=en&wait={wait}"));
    (status, serde_json::from_str(&body).unwrap_or_else(|_| panic!("{body}")))
}

const UNLIMITED: &str =
    "[server]\nqueue = 3\nburst = 100000\nrequests_per_second = 100000\njobs_per_client = 1000\n";

#[test]
fn equal_questions_are_one_job_and_a_full_queue_sends_the_passages() {
    let Some(models) = models() else { return };
    let archive = published(&models, UNLIMITED);
    let server = Server::start(&archive);
    let ids: HashSet<String> = std::thread::scope(|scope| {
        let one = |_| scope.spawn(|| ask(&server, "Who built the old tower?", 0));
        let asked: Vec<_> = (0..40).map(one).collect();
        let id = |(status, reply): (u16, Value)| match reply["job"]["id"].as_str() {
            Some(id) => id.to_owned(),
            None => {
                assert!(status == 200 && reply["answer"].is_object(), "{status} {reply}");
                "answered".to_owned()
            }
        };
        asked.into_iter().map(|asked| id(asked.join().unwrap())).collect()
    });
    assert_eq!(ids.iter().filter(|id| *id != "answered").count(), 1, "{ids:?}");

    let replies: Vec<(u16, Value)> = std::thread::scope(|scope| {
        let server = &server;
        let one = |n| scope.spawn(move || ask(server, &format!("Who kept the lamp in {n}?"), 0));
        let asked: Vec<_> = (1900..1960).map(one).collect();
        asked.into_iter().map(|asked| asked.join().unwrap()).collect()
    });
    let busy: Vec<&Value> =
        replies.iter().filter(|(status, _)| *status == 503).map(|(_, reply)| reply).collect();
    let taken = replies.iter().filter(|(status, _)| matches!(status, 200 | 202)).count();
    assert_eq!(busy.len() + taken, replies.len());
    assert!(!busy.is_empty() && taken >= 3, "{} busy, {taken} taken", busy.len());
    for reply in busy {
        assert_eq!(reply["status"], "busy");
        assert!(reply["passages"].as_array().is_some_and(|list| !list.is_empty()), "{reply}");
    }
    let question = "/api/ask?q=Who%20kept%20the%20lamp%20in%201999%3F&lang=en";
    let response = server.response(question);
    if response.status() == 503 {
        assert!(response.headers().contains_key("retry-after"));
    }
}

#[test]
fn an_accepted_question_survives_a_kill() {
    let Some(models) = models() else { return };
    let archive = published(&models, UNLIMITED);
    let mut accepted: HashSet<String> = HashSet::new();
    for round in 0..3 {
        let mut server = Server::start(&archive);
        for n in 0..2 {
            let (_, reply) = ask(&server, &format!("When was lamp {round}{n} lit?"), 0);
            if let Some(id) = reply["job"]["id"].as_str() {
                accepted.insert(id.to_owned());
            }
        }
        server.kill();
    }
    assert!(!accepted.is_empty());
    let server = Server::start(&archive);
    let start = Instant::now();
    let mut open = accepted;
    while !open.is_empty() {
        assert!(start.elapsed() < Duration::from_secs(120), "{} jobs never ended", open.len());
        open.retain(|id| {
            let (status, body) = server.get(&format!("/api/jobs/{id}"));
            assert!(matches!(status, 200 | 202), "{id}: {status} {body}");
            status == 202
        });
        std::thread::sleep(Duration::from_millis(200));
    }
}

#[test]
fn events_tell_of_a_job_until_it_ends_and_an_unknown_job_is_named() {
    let Some(models) = models() else { return };
    let archive = published(&models, UNLIMITED);
    let server = Server::start(&archive);
    let (status, reply) = ask(&server, "How many books has the library?", 0);
    assert_eq!(status, 202, "{reply}");
    assert!(reply["passages"].as_array().is_some_and(|list| !list.is_empty()));
    assert!(reply["job"]["estimated_seconds"].as_u64() > Some(0));
    let (status, events) = server.get(reply["job"]["events"].as_str().unwrap());
    assert_eq!(status, 200);
    let last = events.rsplit("event: ").next().unwrap();
    assert!(last.starts_with("end"), "{events}");
    let data = last.split_once("data: ").unwrap().1.trim();
    let data: Value = serde_json::from_str(data).unwrap();
    assert!(matches!(data["status"].as_str(), Some("answered" | "insufficient")), "{data}");
    for id in ["0".repeat(32), "..%2f..%2fisland.toml".into(), "x".into()] {
        let (status, body) = server.get(&format!("/api/jobs/{id}"));
        assert!(status == 404 && body.contains("no such job"), "{status} {body}");
    }
}

#[test]
fn what_is_hostile_gets_nothing_and_others_are_served() {
    let Some(models) = models() else { return };
    let section = "[server]\nheader_seconds = 2\nconnections = 300\nburst = 20\nrequests_per_second = 1\norigins = [\"https://archive.example\"]\n";
    let archive = published(&models, section);
    let server = Server::start(&archive);
    let address = server.address.trim_start_matches("http://").to_owned();

    // Heads that never come: others are served meanwhile, and the connections are closed.
    let mut slow: Vec<TcpStream> = (0..200)
        .map(|_| {
            let mut stream = TcpStream::connect(&address).unwrap();
            stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ").unwrap();
            stream
        })
        .collect();
    let start = Instant::now();
    assert_eq!(server.get("/").0, 200);
    assert!(start.elapsed() < Duration::from_secs(2));
    std::thread::sleep(Duration::from_secs(3));
    for stream in &mut slow {
        stream.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
        let mut rest = Vec::new();
        // Closed, with or without a word about why.
        let _ = stream.read_to_end(&mut rest);
        assert!(
            stream.write_all(b"x").and_then(|()| stream.write_all(b"x")).is_err()
                || rest.starts_with(b"HTTP/1.1 408")
        );
    }

    for path in [
        "/..%2f..%2fisland.toml",
        "/%2e%2e/%2e%2e/island.toml",
        "/..%255c..%255cisland.toml",
        "/..\\..\\island.toml",
        "/en/%00",
        "/work/jobs",
    ] {
        let mut stream = TcpStream::connect(&address).unwrap();
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut text = String::new();
        let _ = stream.read_to_string(&mut text);
        let status = text.split(' ').nth(1).unwrap_or_default();
        assert!(matches!(status, "400" | "404"), "{path}: {text}");
        assert!(!text.contains("[language_model]") && !text.contains("evil.example"), "{text}");
    }

    let response = server.response("/api/search?q=lighthouse");
    let header = |name: &str| response.headers().get(name).map(|v| v.to_str().unwrap().to_owned());
    assert!(header("content-security-policy").unwrap().contains("default-src 'none'"));
    assert_eq!(header("x-content-type-options").as_deref(), Some("nosniff"));
    assert_eq!(header("access-control-allow-origin"), None);
    let agent: ureq::Agent =
        ureq::Agent::config_builder().http_status_as_error(false).build().into();
    let from = |origin: &str| {
        let address = format!("{}/api/search?q=lighthouse", server.address);
        let response = agent.get(address).header("origin", origin).call().unwrap();
        response.headers().get("access-control-allow-origin").cloned()
    };
    assert_eq!(from("https://archive.example").unwrap(), "https://archive.example");
    assert_eq!(from("https://elsewhere.example"), None);

    // An empty bucket turns the client away, and says when to come back.
    let turned_away =
        (0..60).map(|_| server.response("/api/search?q=lamp")).find(|r| r.status() == 429);
    assert!(turned_away.unwrap().headers().contains_key("retry-after"));
    assert_eq!(server.get("/").0, 200, "pages are not counted");
}

#[test]
fn the_openapi_document_tells_the_truth() {
    let Some(models) = models() else { return };
    let archive = published(&models, UNLIMITED);
    let server = Server::start(&archive);
    let (_, text) = server.get("/api/openapi.json");
    let document: Value = serde_json::from_str(&text).unwrap();
    let schemas = &document["components"]["schemas"];
    for (path, methods) in document["paths"].as_object().unwrap() {
        let address = path.replace("{id}", &"0".repeat(32)) + "?q=lamp";
        let (status, body) = server.get(&address);
        let documented = &methods["get"]["responses"][status.to_string()];
        assert!(documented.is_object(), "{path}: {status} is not documented: {body}");
    }
    let (_, found) = server.get("/api/search?q=lamp");
    conforms(&serde_json::from_str(&found).unwrap(), &schemas["SearchReply"], schemas, "search");
    let (_, reply) = ask(&server, "Who lit the lamp?", 0);
    conforms(&reply, &schemas["AskReply"], schemas, "ask");
    let (_, reply) = ask(&server, "Who lit the lamp?", 60);
    assert!(reply["answer"].is_object(), "{reply}");
    conforms(&reply, &schemas["AskReply"], schemas, "ask");
}

/// Whether a value has what a schema requires and nothing that it does not name.
fn conforms(value: &Value, schema: &Value, schemas: &Value, at: &str) {
    if let Some(name) = schema["$ref"].as_str() {
        return conforms(value, &schemas[name.rsplit('/').next().unwrap()], schemas, at);
    }
    if let Some(list) = schema["enum"].as_array() {
        assert!(list.contains(value), "{at}: {value} is not in {list:?}");
        return;
    }
    let fits = match schema["type"].as_str() {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("boolean") => value.is_boolean(),
        Some("integer") => value.is_u64() || value.is_i64(),
        Some("number") => value.is_number(),
        other => panic!("{at}: {other:?}"),
    };
    assert!(fits, "{at}: {value} is no {}", schema["type"]);
    for required in schema["required"].as_array().into_iter().flatten() {
        assert!(value.get(required.as_str().unwrap()).is_some(), "{at}: {required} is missing");
    }
    for (name, member) in value.as_object().into_iter().flatten() {
        let known = &schema["properties"][name];
        assert!(known.is_object(), "{at}.{name} is not documented");
        conforms(member, known, schemas, &format!("{at}.{name}"));
    }
    for item in value.as_array().into_iter().flatten() {
        conforms(item, &schema["items"], schemas, &format!("{at}[]"));
    }
}

/// Lets everything through to `port` but decisions, which it answers with 500 while `fails`.
fn proxy(port: u16, fails: &'static std::sync::atomic::AtomicBool) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let own = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let mut client = client;
                let Ok(mut server) = TcpStream::connect(("127.0.0.1", port)) else { return };
                let (mut back, mut to) = (server.try_clone().unwrap(), client.try_clone().unwrap());
                std::thread::spawn(move || std::io::copy(&mut back, &mut to));
                let mut buffer = [0; 65536];
                while let Ok(count @ 1..) = client.read(&mut buffer) {
                    let is_decision = buffer[..count].starts_with(b"POST /completion");
                    if is_decision && fails.load(std::sync::atomic::Ordering::Relaxed) {
                        let _ = client.write_all(
                            b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
                        );
                        let _ = client.shutdown(std::net::Shutdown::Both);
                        return;
                    }
                    if server.write_all(&buffer[..count]).is_err() {
                        return;
                    }
                }
            });
        }
    });
    own
}

#[test]
fn a_new_question_never_meets_a_dead_end() {
    use std::sync::atomic::{AtomicBool, Ordering};
    static FAILS: AtomicBool = AtomicBool::new(false);
    let Some(models) = models() else { return };
    let Some(llama) = LlamaServer::start(2, 8192) else { return };
    let port = proxy(llama.port(), &FAILS);
    let section = format!(
        "{UNLIMITED}patience_seconds = 2\naway_seconds = 1\n[[language_model.server]]\nurl = \"http://127.0.0.1:{port}\"\n"
    );
    let archive = published(&models, &section);
    let server = Server::start(&archive);
    // The passages come within a second whatever happens to the engine.
    let at_once = |question: &str| {
        let start = Instant::now();
        let (status, reply) = ask(&server, question, 0);
        assert!(matches!(status, 200 | 202), "{reply}");
        assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
    };
    let mode = |question: &str| {
        at_once(question);
        let (_, reply) = ask(&server, question, 60);
        reply["answer"]["mode"].as_str().unwrap_or_else(|| panic!("{reply}")).to_owned()
    };
    ask(&server, "Is anyone there?", 60);
    assert_eq!(mode("Who lit the lamp first?"), "full");
    FAILS.store(true, Ordering::Relaxed);
    assert_eq!(mode("Who lit the lamp then?"), "degraded", "it is there and fails");
    FAILS.store(false, Ordering::Relaxed);
    drop(llama);
    assert_eq!(mode("Who lit the lamp at last?"), "degraded", "it is away");
}
