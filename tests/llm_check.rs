//! `florilegium llm check` names what does not work, and never the key.

#![allow(clippy::unwrap_used)]

mod support;

use std::path::Path;

use serde_json::Value;
use support::{Archive, florilegium, stderr, stdout};

#[test]
fn engines_that_do_not_work_are_named_with_the_remedy_and_without_the_key() {
    let archive = Archive::new(Path::new("/nonexistent/models"), 0.5);
    let text = std::fs::read_to_string(archive.pipeline()).unwrap();
    let server = "[[language_model.server]]\nurl = \"http://127.0.0.1:1\"\nkey_env = \"TEST_KEY\"\n[passages]";
    std::fs::write(archive.pipeline(), text.replacen("[passages]", server, 1)).unwrap();
    let check = |key: Option<&str>| -> Value {
        let mut command = florilegium(archive.folder.path());
        command.env_remove("TEST_KEY").args(["llm", "check", "--json", "--pipeline"]);
        command.arg(archive.pipeline()).envs(key.map(|key| ("TEST_KEY", key)));
        let output = command.output().unwrap();
        assert!(!output.status.success());
        let (out, err) = (stdout(&output), stderr(&output));
        assert!(!out.contains("hush") && !err.contains("hush"), "{out}{err}");
        serde_json::from_str(&out).unwrap()
    };
    let checked = check(Some("sk-hush"));
    for (at, engine, words) in
        [(0, "http://127.0.0.1:1", "127.0.0.1:1"), (1, "in-process", "models fetch")]
    {
        assert_eq!(
            (&checked[at]["engine"], &checked[at]["works"]),
            (&engine.into(), &false.into())
        );
        let problem = checked[at]["problem"].as_str().unwrap();
        assert!(problem.contains(words), "{problem}");
    }
    let checked = check(None);
    let problem = checked[0]["problem"].as_str().unwrap();
    assert!(problem.contains("TEST_KEY"), "{problem}");
}
