//! The nightly run: killed at any instant, on a full disk, on a read-only one, with damaged files, twice
//! at once, with the clock set back. Whatever happens, the next run ends with the same bytes.
//!
//! `FLORILEGIUM_KILLS=100` kills it a hundred times instead of a few.

#![allow(clippy::unwrap_used)]

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime};

use serde_json::Value;
use support::night::{
    QUESTIONS, answers, assert_same, command, fresh, good_night, is_words, kept, nightly, small,
    write_questions,
};
use support::{Archive, models, stderr, stdout, tree};

/// Numbers that look random, from a seed that is printed.
struct Random(u64);

impl Random {
    fn new() -> Self {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
        let seed = std::env::var("FLORILEGIUM_SEED").ok().and_then(|seed| seed.parse().ok());
        let seed = seed.unwrap_or(u64::from(now.subsec_nanos()));
        println!("FLORILEGIUM_SEED={seed}");
        Random(seed)
    }

    /// From 0 to 1.
    fn next(&mut self) -> f64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// An archive after an undisturbed night, what it kept, and how long that took. The night is spent
/// once; each test gets a copy.
fn undisturbed(models: &Path) -> (Archive, &'static BTreeMap<PathBuf, Vec<u8>>, Duration) {
    static NIGHT: OnceLock<(Archive, BTreeMap<PathBuf, Vec<u8>>, Duration)> = OnceLock::new();
    let (archive, kept, took) = NIGHT.get_or_init(|| {
        let mut archive = small(models);
        // What is static is never dropped: the folder of the last time goes now.
        let nights = Path::new(env!("CARGO_TARGET_TMPDIR")).join("nights");
        let _ = fs::remove_dir_all(&nights);
        fs::create_dir_all(&nights).unwrap();
        let folder = tempfile::tempdir_in(&nights).unwrap();
        copy_all(archive.folder.path(), folder.path());
        archive.folder = folder;
        let start = Instant::now();
        let report = good_night(&archive);
        let took = start.elapsed();
        assert_eq!(fresh(&report).len(), QUESTIONS.len());
        let kept = kept(&archive);
        (archive, kept, took)
    });
    let copy = Archive { folder: tempfile::tempdir().unwrap() };
    copy_all(archive.folder.path(), copy.folder.path());
    (copy, kept, *took)
}

/// Copies a folder with its links and times.
fn copy_all(from: &Path, to: &Path) {
    let done = Command::new("cp").arg("-a").arg(from.join(".")).arg(to).status().unwrap();
    assert!(done.success());
}

#[test]
fn killed_at_any_instant_it_ends_with_the_same_bytes_and_computes_nothing_twice() {
    let Some(models) = models() else { return };
    let kills: u32 =
        std::env::var("FLORILEGIUM_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(6);
    let (_reference, expected, took) = undisturbed(&models);
    let mut random = Random::new();
    let (mut killed, mut lives, mut in_flight) = (0, 0, 0);
    while killed < kills {
        lives += 1;
        let archive = small(&models);
        let mut before = BTreeMap::new();
        loop {
            let mut child = command(&archive, &["nightly"])
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            std::thread::sleep(took.mul_f64(random.next() * 1.1));
            let over = child.try_wait().unwrap().is_some();
            let _ = child.kill();
            child.wait().unwrap();
            let now = answers(&archive);
            for (key, file) in &before {
                assert_eq!(now.get(key), Some(file), "{key} was computed twice");
            }
            before = now;
            if over {
                break;
            }
            killed += 1;
            in_flight += 1;
        }
        let report = good_night(&archive);
        for (key, file) in &before {
            assert_eq!(answers(&archive).get(key), Some(file), "{key} was computed twice");
        }
        let all = QUESTIONS.len() - before.len();
        assert_eq!(fresh(&report).len(), all, "only what was not there is computed");
        assert_same(&kept(&archive), expected, &format!("life {lives}, {in_flight} kills"));
        in_flight = 0;
    }
    println!("killed {killed} times in {lives} nights; an undisturbed one took {took:?}");
}

#[test]
fn a_flipped_byte_in_any_file_costs_that_file_and_nothing_else() {
    let Some(models) = models() else { return };
    let (archive, expected, _) = undisturbed(&models);
    let all = std::env::var_os("FLORILEGIUM_KILLS").is_some();
    let mut taken: BTreeMap<String, usize> = BTreeMap::new();
    let (mut flipped, mut decisions_lost) = (0, false);
    for (name, _) in tree(&archive.path("work")) {
        let room = name.iter().next().unwrap().to_string_lossy().into_owned();
        let is_report = room == "runs" && !name.ends_with("run");
        // tantivy's own lock files are empty.
        let path = archive.path("work").join(&name);
        if name.as_os_str() == "lock"
            || is_report
            || !path.is_file()
            || path.metadata().unwrap().len() == 0
        {
            continue;
        }
        let of_this_room = taken.entry(room.clone()).or_default();
        *of_this_room += 1;
        if !all && *of_this_room > 1 {
            continue;
        }
        flipped += 1;
        let mut bytes = fs::read(&path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 0x10;
        fs::write(&path, &bytes).unwrap();

        let verify = archive.florilegium(&["store", "verify"]);
        let found = stdout(&verify);
        // What tantivy writes for itself has no checksum; most changes in it do no harm.
        let ignored = name.ends_with(".managed.json") || name.ends_with("meta.json");
        if !ignored {
            assert!(!verify.status.success(), "{}: {found}", name.display());
            let place = if is_words(&name) { Path::new(&room) } else { &name };
            assert!(
                found.contains(&*place.to_string_lossy()) || room == "index" || room == "wordings",
                "{found}"
            );
        }
        let report = good_night(&archive);
        let computed = fresh(&report);
        assert_eq!(
            computed.len(),
            usize::from(room == "answers"),
            "{}: {computed:?}",
            name.display()
        );
        assert_eq!(report["cost"]["computed_tokens"], 0, "{}", name.display());
        let (mut after, mut expected) = (kept(&archive), expected.clone());
        decisions_lost |= room == "decisions";
        if decisions_lost {
            // Nothing depends on a decision whose answer is kept: it is taken again when it is wanted.
            after.retain(|name, _| !name.starts_with("decisions"));
            expected.retain(|name, _| !name.starts_with("decisions"));
        }
        assert_same(&after, &expected, &format!("{} flipped", name.display()));
        let verify = archive.florilegium(&["store", "verify"]);
        // A record of an earlier night is not made anew; it stays until it is removed.
        if room == "runs" {
            assert!(!verify.status.success());
            fs::remove_dir_all(path.parent().unwrap()).unwrap();
        } else if !ignored {
            assert!(verify.status.success(), "{}: {}", name.display(), stdout(&verify));
        }
    }
    println!("{flipped} files flipped, one after another");
    assert!(flipped > 6);
}

/// A small file system of its own, which goes with the test. None where that is not allowed.
struct Disk(PathBuf);

impl Disk {
    fn mount(at: &Path, kilobytes: u64) -> Option<Self> {
        fs::create_dir_all(at).unwrap();
        let size = format!("size={kilobytes}k");
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(at).output();
        if mounted.is_ok_and(|output| output.status.success()) {
            return Some(Disk(at.to_owned()));
        }
        println!("skipped: no small file system can be mounted here");
        None
    }

    fn remount(&self, options: &str) {
        let options = format!("remount,{options}");
        assert!(
            Command::new("mount").args(["-o", &options]).arg(&self.0).status().unwrap().success()
        );
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn on_a_full_disk_it_stops_with_the_remedy_and_goes_on_when_there_is_room() {
    let Some(models) = models() else { return };
    let (reference, expected, _) = undisturbed(&models);
    let needed: u64 = tree(&reference.path("work"))
        .iter()
        .map(|(_, bytes)| bytes.len().div_ceil(4096) as u64 * 4)
        .sum();
    let archive = small(&models);
    let Some(disk) = Disk::mount(&archive.path("work"), 16) else { return };
    // Each time there is a little more room, and it is used up somewhere else.
    for part in [0.1, 0.4, 0.7, 0.9] {
        disk.remount(&format!("size={}k", (needed as f64 * part) as u64));
        let output = nightly(&archive, &[]);
        assert_eq!(output.status.code(), Some(1), "{part}: {}", stdout(&output));
        assert!(stderr(&output).contains("free some space"), "{part}: {}", stderr(&output));
        assert!(!archive.path("public/island").exists(), "published at {part}");
    }
    disk.remount("size=64m");
    good_night(&archive);
    assert_same(&kept(&archive), expected, "after a full disk");
}

#[test]
fn a_read_only_store_is_named_and_the_release_stays() {
    let Some(models) = models() else { return };
    let archive = small(&models);
    let Some(disk) = Disk::mount(&archive.path("work"), 65536) else { return };
    good_night(&archive);
    let before = kept(&archive);
    let mut questions = QUESTIONS.to_vec();
    questions.push(("bell", "Who rings the bell?", 0));
    write_questions(&archive, &questions);
    disk.remount("ro");
    let output = nightly(&archive, &[]);
    assert_eq!(output.status.code(), Some(1));
    let message = stderr(&output);
    assert!(message.contains("work") && message.contains("may write to"), "{message}");
    assert_same(&kept(&archive), &before, "a read-only store");
    disk.remount("rw");
    assert_eq!(fresh(&good_night(&archive)), ["bell"]);
}

#[test]
fn of_two_runs_at_once_one_works_and_the_other_says_who_does() {
    let Some(models) = models() else { return };
    let archive = small(&models);
    let spawn = || {
        command(&archive, &["nightly"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let children = [spawn(), spawn()];
    let outputs = children.map(|child| child.wait_with_output().unwrap());
    let codes: Vec<_> = outputs.iter().filter_map(|output| output.status.code()).collect();
    assert!(codes == [0, 1] || codes == [1, 0], "{codes:?}");
    let refused = outputs.iter().find(|output| !output.status.success()).unwrap();
    let message = stderr(refused);
    assert!(message.contains("is held by process") && message.contains(" on "), "{message}");
    let (_, expected, _) = undisturbed(&models);
    assert_same(&kept(&archive), expected, "two at once");
}

#[test]
fn a_clock_that_is_set_back_changes_nothing_but_dates() {
    let Some(models) = models() else { return };
    let (archive, before, _) = undisturbed(&models);
    // The sources were written in what is now the future.
    for file in fs::read_dir(archive.path("corpus/en")).unwrap() {
        let file = fs::File::options().append(true).open(file.unwrap().path()).unwrap();
        file.set_modified(SystemTime::now() + Duration::from_secs(86_400 * 30)).unwrap();
    }
    let back = |more: &[&str]| {
        let output = command(&archive, &["nightly", "--json"])
            .env("SOURCE_DATE_EPOCH", "1700000000")
            .args(more)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        serde_json::from_str::<Value>(&stdout(&output)).unwrap()
    };
    let report = back(&[]);
    assert_eq!(fresh(&report), Vec::<String>::new());
    assert_eq!(report["number"], 2);
    assert_eq!(report["built"]["embedded_passages"], 0);
    assert_same(&kept(&archive), before, "the clock set back");
    let mut questions = QUESTIONS.to_vec();
    questions.push(("bell", "Who rings the bell?", 0));
    write_questions(&archive, &questions);
    let report = back(&[]);
    assert_eq!(fresh(&report), ["bell"]);
    let bell = report["questions"].as_array().unwrap().iter().find(|q| q["id"] == "bell").unwrap();
    assert_eq!(bell["computed_on"], "2023-11-14");
}

#[test]
fn asked_to_stop_it_keeps_what_it_has_and_the_next_run_does_the_rest() {
    let Some(models) = models() else { return };
    let archive = small(&models);
    let child = command(&archive, &["nightly"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let start = Instant::now();
    while answers(&archive).is_empty() && start.elapsed() < Duration::from_secs(300) {
        std::thread::sleep(Duration::from_millis(20));
    }
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    let done = answers(&archive).len();
    assert_eq!(output.status.code(), Some(1), "{}", stdout(&output));
    assert!(
        stderr(&output).contains("questions have their answers, which are kept"),
        "{}",
        stderr(&output)
    );
    assert!((1..QUESTIONS.len()).contains(&done), "{done}");
    assert!(!archive.path("public/island").exists());
    assert_eq!(fresh(&good_night(&archive)).len(), QUESTIONS.len() - done);
}

#[test]
fn the_most_wanted_come_first_and_a_deadline_leaves_the_rest() {
    let Some(models) = models() else { return };
    let archive = small(&models);
    // Nothing can be answered before this.
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs() + 1;
    let clock = format!("{:02}:{:02}:{:02}", now / 3600 % 24, now / 60 % 60, now % 60);
    let output = nightly(&archive, &["--deadline", &clock]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    let report: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert!(
        report["questions"].as_array().unwrap().iter().all(|q| q["outcome"] == "left"),
        "{report:#}"
    );
    assert!(report["notes"].to_string().contains("8 questions are left"), "{}", report["notes"]);
    assert!(report["release"].is_string());

    // Two of the same priority: the one that readers asked more often goes first.
    let mut questions = QUESTIONS.to_vec();
    questions.iter_mut().filter(|q| ["lens", "opening"].contains(&q.0)).for_each(|q| q.2 = 9);
    write_questions(&archive, &questions);
    let text = fs::read_to_string(archive.pipeline()).unwrap();
    let text = text.replace("[questions]\n", "[questions]\nasked = \"asked.jsonl\"\n");
    fs::write(archive.pipeline(), text).unwrap();
    fs::write(
        archive.path("asked.jsonl"),
        "{\"lang\":\"en\",\"question\":\"when is the library open\",\"count\":3}\nnot a line\n\
         {\"lang\":\"en\",\"question\":\"Who made the lens of the lighthouse?\"}\n",
    )
    .unwrap();
    let order = ["opening", "lens", "ferry", "ticket", "keeper", "fire", "loan", "height"];
    let plan = archive.florilegium(&["plan", "--json"]);
    let plan: Value = serde_json::from_str(&stdout(&plan)).unwrap();
    let planned: Vec<&str> =
        plan["questions"].as_array().unwrap().iter().map(|q| q["id"].as_str().unwrap()).collect();
    assert_eq!(planned, order);
    assert_eq!(fresh(&good_night(&archive)), order);
}

#[test]
fn a_plan_says_why_and_is_what_the_run_does() {
    let Some(models) = models() else { return };
    let archive = small(&models);
    let plan = |archive: &Archive| {
        let output = archive.florilegium(&["plan", "--json"]);
        assert!(output.status.success(), "{}", stderr(&output));
        let plan: Value = serde_json::from_str(&stdout(&output)).unwrap();
        let questions = plan["questions"].as_array().unwrap().clone();
        questions
            .into_iter()
            .filter(|q| q["action"] == "answer")
            .map(|q| {
                (
                    q["id"].as_str().unwrap().to_owned(),
                    q["reasons"].to_string(),
                    q["estimate"].clone(),
                )
            })
            .collect::<Vec<_>>()
    };
    let first = plan(&archive);
    assert_eq!(first.len(), 8);
    assert!(
        first.iter().all(|(_, why, estimate)| why.contains("new question") && estimate.is_null())
    );
    good_night(&archive);
    assert_eq!(plan(&archive), []);
    let text = stdout(&archive.florilegium(&["plan"]));
    assert!(
        text.contains("8 questions: 0 to answer, 8 kept") && text.contains("no model work"),
        "{text}"
    );

    // One document says more about the ferry.
    let path = archive.path("corpus/en/ferry.html");
    let html = fs::read_to_string(&path).unwrap();
    let added =
        "<p>How long does the ferry take? The ferry takes forty-one minutes to Morvane.</p></body>";
    fs::write(&path, html.replace("</body>", added)).unwrap();
    let changed = plan(&archive);
    assert!((1..8).contains(&changed.len()), "{changed:?}");
    let (_, why, estimate) = changed.iter().find(|(id, ..)| id == "ferry").unwrap();
    assert!(why.contains("passage set changed: 1 new passage in the top 2"), "{why}");
    assert!(estimate["tokens"].as_f64() > Some(0.0) && estimate["seconds"].as_f64() > Some(0.0));
    let why = archive.florilegium(&["why", "ferry"]);
    let text = stdout(&why);
    assert!(
        text.contains("now: passage set changed") && text.contains("the next run answers it anew"),
        "{text}"
    );
    let ids: Vec<String> = changed.into_iter().map(|(id, ..)| id).collect();
    let report = good_night(&archive);
    assert_eq!(fresh(&report), ids);
    assert!(report["expected_seconds"].as_f64() > Some(0.0));
    let text = stdout(&archive.florilegium(&["why", "ferry"]));
    assert!(text.contains("nothing differs from now"), "{text}");

    // A setting changes them all, and is named.
    let text = fs::read_to_string(archive.pipeline()).unwrap();
    fs::write(archive.pipeline(), text.replace("sentences = 2", "sentences = 1")).unwrap();
    let changed = plan(&archive);
    assert_eq!(changed.len(), 8);
    assert!(changed.iter().all(|(_, why, _)| why.contains("setting sentences changed: 2, now 1")));
    // An earlier setting: the answers are still there.
    let text = fs::read_to_string(archive.pipeline()).unwrap();
    good_night(&archive);
    fs::write(archive.pipeline(), text.replace("sentences = 1", "sentences = 2")).unwrap();
    assert_eq!(plan(&archive), []);
    assert_eq!(fresh(&good_night(&archive)), Vec::<String>::new());
}

#[test]
fn too_much_change_is_not_published_unless_that_is_wanted() {
    let Some(models) = models() else { return };
    let (archive, before, _) = undisturbed(&models);
    let release = fs::canonicalize(archive.path("public/island")).unwrap();
    fs::remove_file(archive.path("corpus/en/ferry.html")).unwrap();
    fs::remove_file(archive.path("corpus/en/library.html")).unwrap();
    // The second night as well: what counts is the last release, not last night.
    for _ in 0..2 {
        let output = nightly(&archive, &[]);
        assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
        let report: Value = serde_json::from_str(&stdout(&output)).unwrap();
        assert_eq!(report["status"], "kept_back");
        assert!(report["notes"].to_string().contains("passages are gone"), "{}", report["notes"]);
        assert!(report["notes"].to_string().contains("--publish-anyway"));
        assert_eq!(fs::canonicalize(archive.path("public/island")).unwrap(), release);
    }
    let output = nightly(&archive, &["--publish-anyway"]);
    assert_eq!(output.status.code(), Some(0), "{}", stdout(&output));
    assert_ne!(fs::canonicalize(archive.path("public/island")).unwrap(), release);
    assert_ne!(kept(&archive), *before);

    // Now every answer turns into "insufficient".
    let text = fs::read_to_string(archive.pipeline()).unwrap();
    fs::write(archive.pipeline(), text.replace("answer_at = 0.0", "answer_at = 1.0")).unwrap();
    let output = nightly(&archive, &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stdout(&output).contains("turned into"), "{}", stdout(&output));
}

/// Makes the language model one that is served by a server that is not there.
fn away(archive: &Archive, more: &str) {
    let text = fs::read_to_string(archive.pipeline()).unwrap();
    let text = text.replace("smollm2-135m-instruct-q4", "qwen2.5-coder-0.5b-instruct-q4").replace(
        "[passages]",
        "patience_seconds = 1\n[[language_model.server]]\nurl = \"http://127.0.0.1:9\"\n[passages]",
    );
    fs::write(archive.pipeline(), format!("{text}\n")).unwrap();
    let text = fs::read_to_string(archive.pipeline()).unwrap();
    fs::write(archive.pipeline(), text.replace("[questions]", &format!("{more}[questions]")))
        .unwrap();
}

#[test]
fn with_the_model_away_questions_wait_with_the_answers_they_had_or_another_model_answers() {
    let Some(models) = models() else { return };
    if models.join("qwen2.5-coder-0.5b-instruct-q4_k_m.gguf").exists() {
        println!("skipped: the model that should be away is here");
        return;
    }
    let (archive, _, _) = undisturbed(&models);
    away(&archive, "");
    let output = nightly(&archive, &[]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    let report: Value = serde_json::from_str(&stdout(&output)).unwrap();
    for question in report["questions"].as_array().unwrap() {
        assert_eq!((&question["outcome"], &question["stale"]), (&"waiting".into(), &true.into()));
    }
    let notes = report["notes"].to_string();
    assert!(
        notes.contains("can be reached") && notes.contains("8 questions wait for it"),
        "{notes}"
    );
    let page = fs::read_to_string(archive.path("public/island/en/q/ferry/index.html"));
    assert!(page.unwrap().contains("is the last good one"));

    let text = fs::read_to_string(archive.pipeline()).unwrap();
    let degraded =
        "[degraded_model]\nmodel = \"smollm2-135m-instruct-q4\"\nthreads = 1\n[questions]";
    fs::write(archive.pipeline(), text.replace("[questions]", degraded)).unwrap();
    // Not if it is told to wait.
    let degrades = fs::read_to_string(archive.pipeline()).unwrap();
    let waits = degrades.replace("[questions]", "[nightly]\nwhen_away = \"wait\"\n[questions]");
    fs::write(archive.pipeline(), waits).unwrap();
    let output = nightly(&archive, &[]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    fs::write(archive.pipeline(), degrades).unwrap();
    let output = nightly(&archive, &[]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let report: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert!(report["notes"].to_string().contains("answered in its stead"), "{}", report["notes"]);
    for question in report["questions"].as_array().unwrap() {
        assert!(question["model"].as_str().unwrap().starts_with("smollm2"));
    }
}

#[test]
fn a_report_is_written_for_people_machines_and_mail() {
    let Some(models) = models() else { return };
    let archive = small(&models);
    let output = command(&archive, &["nightly"]).output().unwrap();
    let text = stdout(&output);
    assert!(text.starts_with("island run 1: published, all well\n"), "{text}");
    let folder = archive.path("work/runs/latest");
    let html = fs::read_to_string(folder.join("report.html")).unwrap();
    assert_eq!(html.matches("<tr class=\"question\"").count(), 8);
    let json: Value =
        serde_json::from_slice(&fs::read(folder.join("report.json")).unwrap()).unwrap();
    assert_eq!(json["questions"].as_array().map(Vec::len), Some(8));
    assert!(fs::read(folder.join("questions.parquet")).unwrap().starts_with(b"PAR1"));
    let mail = fs::read_to_string(folder.join("summary.txt")).unwrap();
    assert!(text.starts_with(&mail), "{mail}");

    let stats = stdout(&archive.florilegium(&["store", "stats"]));
    assert!(stats.starts_with("8 answers (2026-12-01 to 2026-12-01), 0 damaged"), "{stats}");
    let verify = stdout(&archive.florilegium(&["store", "verify"]));
    assert!(verify.contains(" 0 damaged"), "{verify}");

    // A question that is no longer listed leaves an answer that nothing needs, once the next release
    // does without it.
    write_questions(&archive, &QUESTIONS[1..]);
    let report = good_night(&archive);
    assert_eq!(report["retired"], serde_json::json!(["keeper"]));
    let gc = |more: &[&str]| {
        let output = command(&archive, &["store", "gc", "--keep-days", "0"])
            .env("SOURCE_DATE_EPOCH", "1796256000")
            .args(more)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        stdout(&output)
    };
    let text = gc(&["--dry-run"]);
    assert!(text.starts_with("would remove 1 answers of 8, 1 notes"), "{text}");
    assert!(gc(&[]).starts_with("removed 1 answers of 8, 1 notes"));
    assert!(gc(&[]).starts_with("removed 0 answers of 7, 0 notes"));
    assert_eq!(fresh(&good_night(&archive)), Vec::<String>::new());
}

/// A thousand documents of a paragraph and a thousand questions, ten about each of the first hundred.
fn thousand(models: &Path) -> Archive {
    let archive = small(models);
    let text = fs::read_to_string(archive.pipeline()).unwrap();
    // One decision a question: what is measured is everything else.
    let text = text
        .replace("passages = 2\n", "passages = 3\n")
        .replace("relevant_at = 0.0", "relevant_at = 1.0")
        .replace("chunk = 8", "chunk = 512")
        .replace("threads = 1\n", "");
    fs::write(archive.pipeline(), text).unwrap();
    fs::remove_dir_all(archive.path("corpus/en")).unwrap();
    fs::create_dir(archive.path("corpus/en")).unwrap();
    for number in 0..1000 {
        write_note(&archive, number, "wood");
    }
    fs::write(archive.path("corpus/questions.csv"), thousand_questions(500)).unwrap();
    archive
}

fn thousand_questions(count: usize) -> String {
    let asks = [
        "What is",
        "Who makes",
        "Where lies",
        "How old is",
        "How heavy is",
        "What does it cost to buy",
        "Who needs",
        "When was it that one found",
        "Why does one want",
        "How does one use",
    ];
    let mut list = String::from("id,lang,question\n");
    for number in 0..count {
        let ask = asks[number % 10];
        list += &format!("q{number},en,{ask} the {} of the island?\n", word(number / 10));
    }
    list
}

fn write_note(archive: &Archive, number: usize, of: &str) {
    let word = word(number);
    let text = format!(
        "<title>{word}</title><p>The {word} is a thing made of {of}. Number {number} of the list of the island is the {word}.</p>"
    );
    fs::write(archive.path(&format!("corpus/en/{word}.html")), text).unwrap();
}

/// A word that no other number has.
fn word(number: usize) -> String {
    let syllable = |at: usize| {
        let consonants = b"bdfgklmnprstvz";
        let vowels = b"aeiou";
        [consonants[at % 14] as char, vowels[at / 14 % 5] as char].iter().collect::<String>()
    };
    format!("{}{}{}", syllable(number % 61), syllable(number / 61 + 7), syllable(number % 53 + 11))
}

#[test]
fn a_thousand_documents_and_questions_cost_what_has_changed() {
    if std::env::var_os("FLORILEGIUM_BENCH").is_none() {
        return;
    }
    let Some(models) = models() else { return };
    let archive = thousand(&models);
    let night = |what: &str| {
        let start = Instant::now();
        let output = nightly(&archive, &["--publish-anyway"]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let report: Value = serde_json::from_str(&stdout(&output)).unwrap();
        println!(
            "{what}: {:.1} s in all, {} passages embedded, {} questions asked of the model, {} tokens computed (expected {}), {:.1} s for answers (expected {}), {:.1} s of planning, {:.1} s of audit and publication",
            start.elapsed().as_secs_f64(),
            report["built"]["embedded_passages"],
            fresh(&report).len(),
            report["cost"]["computed_tokens"],
            report["expected_tokens"],
            report["synthesis_seconds"].as_f64().unwrap(),
            report["expected_seconds"],
            report["plan_seconds"].as_f64().unwrap(),
            report["publish_seconds"].as_f64().unwrap(),
        );
        report
    };
    // What is retrieved for each question, and how many passages had to be embedded to know it.
    let retrieved = || -> (BTreeMap<String, Value>, Value) {
        let plan = archive.florilegium(&["plan", "--json"]);
        let plan: Value = serde_json::from_str(&stdout(&plan)).unwrap();
        let questions = plan["questions"].as_array().unwrap().iter();
        let passages =
            questions.map(|q| (q["id"].as_str().unwrap().to_owned(), q["passages"].clone()));
        (passages.collect(), plan["built"]["embedded_passages"].clone())
    };
    night("the first night, five hundred questions");
    fs::write(archive.path("corpus/questions.csv"), thousand_questions(1000)).unwrap();
    let report = night("five hundred questions added");
    let expected = report["expected_tokens"].as_f64().unwrap();
    let share = report["cost"]["computed_tokens"].as_f64().unwrap() / expected;
    assert!((0.5..2.0).contains(&share), "{share} of the tokens expected");
    let report = night("nothing changed");
    assert_eq!((&report["built"]["embedded_passages"], fresh(&report).len()), (&0.into(), 0));
    assert_eq!(report["cost"]["decisions"], 0);

    let (before, _) = retrieved();
    write_note(&archive, 42, "iron");
    let (after, embedded) = retrieved();
    println!("one document changed: {embedded} passages embedded to plan");
    assert_eq!(embedded, 1);
    let depend: Vec<&String> = before.keys().filter(|id| before[*id] != after[*id]).collect();
    let report = night("one document changed");
    let mut asked = fresh(&report);
    asked.sort();
    println!("{} questions have other passages now; asked were {}", depend.len(), asked.len());
    assert_eq!(asked.iter().collect::<Vec<_>>(), depend);
    assert!(depend.len() >= 10, "the ten about the document that changed");

    fs::write(archive.path("corpus/questions.csv"), thousand_questions(1010)).unwrap();
    let report = night("ten questions added");
    assert_eq!(fresh(&report).len(), 10);
    assert_eq!(report["built"]["embedded_passages"], 0);
}
