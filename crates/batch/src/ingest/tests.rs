#![allow(clippy::unwrap_used)]

use std::fs;
use std::time::Duration;

use super::*;

/// An archive of two collections in a folder, and its pipeline.
struct Desk {
    folder: tempfile::TempDir,
    pipeline: Pipeline,
}

impl Desk {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let collection = |id: &str| {
            format!(
                "[[collection]]\nid = \"{id}\"\ntitle = \"{id}\"\npath = \"{id}\"\nlanguage = \"en\"\nrole = \"synthesis\"\nlicence = \"CC0\"\nurl = \"https://example.org/{{path}}\"\n"
            )
        };
        let text = format!(
            "id = \"demo\"\ntitle = {{ en = \"Demo\" }}\nlanguages = [\"en\"]\n[paths]\nwork = \"work\"\nmodel_list = \"models.toml\"\nmodels = \"models\"\npublic = \"public\"\n[embedding]\nmodel = \"e\"\ntokenizer = \"t\"\n[language_model]\nmodel = \"l\"\n[passages]\ntokens = 40\n[questions]\nfile = \"q.csv\"\n{}{}",
            collection("a"),
            collection("b")
        );
        let path = folder.path().join("demo.toml");
        fs::write(&path, text).unwrap();
        let pipeline = Pipeline::load(&path).unwrap();
        let desk = Desk { folder, pipeline };
        desk.write("a/one.txt", "One text, about the sea.\n\nIt has two paragraphs.");
        desk.write("a/two.txt", "Another text.");
        desk.write("b/three.html", "<title>Three</title><p>A page.");
        desk
    }

    /// Writes a file that looks as if it had been there for a while.
    fn write(&self, path: &str, text: &str) {
        let path = self.folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        self.age(&path, 3600);
    }

    fn age(&self, path: &Path, seconds: u64) {
        let file = fs::File::options().write(true).open(path).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(seconds)).unwrap();
    }

    fn read(&self) -> (StoredArchive, Built) {
        let mut built = Built::default();
        let counter = || Ok(Box::new(|text: &str| text.split_whitespace().count()) as TokenCounter);
        let stored = read(&self.pipeline, "embedding", counter, &mut built).unwrap();
        (stored, built)
    }

    /// Reads everything as if for the first time.
    fn read_anew(&self) -> StoredArchive {
        fs::remove_file(archive_path(&self.pipeline)).unwrap();
        self.read().0
    }
}

fn counts(built: &Built) -> [usize; 4] {
    [built.files_read, built.files_kept, built.files_renamed, built.files_removed]
}

/// Documents, passages and reports, as bytes; when they were read does not count.
fn bytes(stored: &StoredArchive) -> (String, String) {
    let all: Vec<_> = stored.archive.documents().iter().map(|d| format!("{d:?}")).collect();
    let passages: Vec<_> = stored.archive.passages().iter().map(|p| format!("{p:?}")).collect();
    (all.join("\n") + &passages.join("\n"), format!("{:?}", stored.reports))
}

#[test]
fn what_has_not_changed_is_not_read_again() {
    let desk = Desk::new();
    let (first, built) = desk.read();
    assert_eq!(counts(&built), [3, 0, 0, 0]);
    assert!(built.read);
    let (second, built) = desk.read();
    assert_eq!(counts(&built), [0, 3, 0, 0]);
    assert!(!built.read);
    assert_eq!(bytes(&first), bytes(&second));
    assert_eq!(
        first.reports[0].1.passages,
        first.archive.passages().iter().filter(|p| p.collection == "a").count()
    );
    // Another time, the same bytes.
    desk.age(&desk.folder.path().join("a/one.txt"), 60);
    let (third, built) = desk.read();
    assert_eq!(counts(&built), [0, 3, 0, 0]);
    assert_eq!(bytes(&first), bytes(&third));
}

#[test]
fn what_has_changed_is_read_and_nothing_else() {
    let desk = Desk::new();
    let (first, _) = desk.read();
    desk.write("a/one.txt", "One text, about the land.\n\nIt has two paragraphs.");
    let (second, built) = desk.read();
    assert_eq!(counts(&built), [1, 2, 0, 0]);
    assert_ne!(bytes(&first), bytes(&second));
    assert_eq!(bytes(&second), bytes(&desk.read_anew()));
    // The same size and time, but written while it was read before.
    let path = desk.folder.path().join("a/two.txt");
    fs::write(&path, "Another test.").unwrap();
    assert_eq!(counts(&desk.read().1), [1, 2, 0, 0]);
    let modified = fs::metadata(&path).unwrap().modified().unwrap();
    fs::write(&path, "Another tent.").unwrap();
    fs::File::options().write(true).open(&path).unwrap().set_modified(modified).unwrap();
    assert_eq!(counts(&desk.read().1), [1, 2, 0, 0]);
}

#[test]
fn a_removed_file_takes_its_passages_with_it() {
    let desk = Desk::new();
    desk.read();
    fs::remove_file(desk.folder.path().join("a/one.txt")).unwrap();
    let (after, built) = desk.read();
    assert_eq!(counts(&built), [0, 2, 0, 1]);
    assert!(after.archive.passages().iter().all(|passage| passage.document != "a/one.txt"));
    assert_eq!(bytes(&after), bytes(&desk.read_anew()));
}

#[test]
fn a_renamed_file_is_recognised() {
    let desk = Desk::new();
    desk.read();
    let path = |name: &str| desk.folder.path().join("a").join(name);
    fs::rename(path("one.txt"), path("sea.txt")).unwrap();
    let (after, built) = desk.read();
    assert_eq!(counts(&built), [0, 3, 1, 0]);
    assert_eq!(bytes(&after), bytes(&desk.read_anew()), "just as if it had been read");
    // A copy is not a rename, and of two copies of a file that is gone one is it.
    fs::copy(path("sea.txt"), path("copy.txt")).unwrap();
    assert_eq!(counts(&desk.read().1), [1, 3, 0, 0]);
    for name in ["x.txt", "y.txt"] {
        fs::copy(path("two.txt"), path(name)).unwrap();
    }
    fs::remove_file(path("two.txt")).unwrap();
    let (after, built) = desk.read();
    assert_eq!(counts(&built), [1, 4, 1, 0]);
    assert_eq!(bytes(&after), bytes(&desk.read_anew()));
}

#[test]
fn other_settings_read_only_their_collection_again() {
    let mut desk = Desk::new();
    desk.read();
    desk.pipeline.collections[1].reading = florilegium_corpus::Reading::Edited;
    assert_eq!(counts(&desk.read().1), [1, 2, 0, 0]);
    // What is only shown changes no text.
    desk.pipeline.collections[0].title = "Other".into();
    let (after, built) = desk.read();
    assert_eq!(counts(&built), [0, 3, 0, 0]);
    assert!(built.read);
    assert_eq!(after.archive.collections()[0].title, "Other");
}

#[test]
fn a_csv_changes_what_is_known_of_a_document() {
    let mut desk = Desk::new();
    desk.read();
    let metadata = desk.folder.path().join("texts.csv");
    fs::write(&metadata, "path,date\none.txt,1900\nnone.txt,1901\n").unwrap();
    desk.pipeline.collections[0].metadata = Some(metadata);
    let (after, built) = desk.read();
    assert_eq!(counts(&built), [2, 1, 0, 0]);
    assert_eq!(after.archive.document("a/one.txt").and_then(|d| d.meta.year()), Some("1900"));
    let warnings = &after.reports[0].1.warnings;
    assert!(warnings.len() == 1 && warnings[0].line == Some(3), "{warnings:?}");
}

#[test]
fn the_order_of_files_on_disk_does_not_matter() {
    let one = Desk::new();
    let other = Desk::new();
    for path in ["a/two.txt", "a/one.txt", "b/three.html"] {
        let whole = other.folder.path().join(path);
        let text = fs::read_to_string(&whole).unwrap();
        fs::remove_file(&whole).unwrap();
        other.write(path, &text);
    }
    assert_eq!(bytes(&one.read().0), bytes(&other.read().0));
}
