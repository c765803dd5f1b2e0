use std::time::Duration;

use super::*;

fn files(text: &str) -> Vec<(String, Vec<u8>)> {
    vec![
        ("index.html".to_owned(), text.as_bytes().to_vec()),
        ("assets/style.css".to_owned(), b"p{}".to_vec()),
        ("en/q/a/index.html".to_owned(), b"a".to_vec()),
    ]
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// Makes a release look `hours` old.
fn age(folder: &Path, hours: u64) {
    let marker = fs::OpenOptions::new().append(true).open(folder.join(MARKER)).unwrap();
    marker.set_modified(SystemTime::now() - Duration::from_secs(hours * 3600)).unwrap();
}

#[test]
fn the_link_leads_to_the_release() {
    let public = tempfile::tempdir().unwrap();
    let folder = release(public.path(), "book", &files("one")).unwrap();
    let link = public.path().join("book");
    assert_eq!(fs::read(link.join("index.html")).unwrap(), b"one");
    assert_eq!(fs::read(link.join("en/q/a/index.html")).unwrap(), b"a");
    let target = fs::read_link(&link).unwrap();
    assert!(target.is_relative(), "the public folder can be moved");
    assert_eq!(fs::canonicalize(&link).unwrap(), fs::canonicalize(&folder).unwrap());
    assert_eq!(names(public.path()), ["book", "releases"]);
}

#[test]
fn the_same_files_are_not_written_again() {
    let public = tempfile::tempdir().unwrap();
    let folder = release(public.path(), "book", &files("one")).unwrap();
    let times = || {
        ["index.html", MARKER, "assets/style.css"]
            .map(|name| folder.join(name).metadata().unwrap().modified().unwrap())
    };
    let before = times();
    std::thread::sleep(Duration::from_millis(20));
    let mut other_order = files("one");
    other_order.reverse();
    assert_eq!(release(public.path(), "book", &other_order).unwrap(), folder);
    assert_eq!(times(), before);
}

#[test]
fn an_altered_file_is_put_back() {
    let public = tempfile::tempdir().unwrap();
    let folder = release(public.path(), "book", &files("one")).unwrap();
    fs::write(folder.join("index.html"), b"altered").unwrap();
    fs::remove_file(folder.join("assets/style.css")).unwrap();
    release(public.path(), "book", &files("one")).unwrap();
    assert_eq!(fs::read(folder.join("index.html")).unwrap(), b"one");
    assert_eq!(fs::read(folder.join("assets/style.css")).unwrap(), b"p{}");
}

#[test]
fn the_last_three_are_kept_and_nothing_else_is_touched() {
    let public = tempfile::tempdir().unwrap();
    let other = release(public.path(), "book-two", &files("other")).unwrap();
    let foreign = public.path().join("releases/book-0123456789ab");
    fs::create_dir(&foreign).unwrap();
    let mut folders = Vec::new();
    for (number, text) in ["1", "2", "3", "4", "5"].into_iter().enumerate() {
        folders.push(release(public.path(), "book", &files(text)).unwrap());
        age(&folders[number], 10 - number as u64);
    }
    let there: Vec<bool> = folders.iter().map(|folder| folder.exists()).collect();
    assert_eq!(there, [false, false, true, true, true]);
    assert!(other.exists(), "another site's release");
    assert!(foreign.exists(), "a folder without the marker");

    // Publishing an older one again makes it the latest.
    release(public.path(), "book", &files("3")).unwrap();
    release(public.path(), "book", &files("6")).unwrap();
    assert!(folders[2].exists() && !folders[3].exists());
}

#[test]
fn a_folder_that_is_not_ours_is_refused_and_left() {
    let public = tempfile::tempdir().unwrap();
    let link = public.path().join("book");
    fs::create_dir(&link).unwrap();
    fs::write(link.join("mine"), b"x").unwrap();
    let message = release(public.path(), "book", &files("one")).unwrap_err().to_string();
    assert!(message.contains("is a folder") && message.contains("move it away"), "{message}");
    assert_eq!(names(public.path()), ["book"], "nothing was written");

    fs::remove_dir_all(&link).unwrap();
    fs::write(&link, b"x").unwrap();
    let message = release(public.path(), "book", &files("one")).unwrap_err().to_string();
    assert!(message.contains("is a file"), "{message}");

    fs::remove_file(&link).unwrap();
    std::os::unix::fs::symlink("elsewhere", &link).unwrap();
    let message = release(public.path(), "book", &files("one")).unwrap_err().to_string();
    assert!(message.contains("a link to somewhere else"), "{message}");
}

#[test]
fn a_run_that_failed_leaves_the_old_site_and_the_next_clears_up() {
    let public = tempfile::tempdir().unwrap();
    release(public.path(), "book", &files("old")).unwrap();
    // A file and a folder of one name: the writing fails half way.
    let mut broken = files("new");
    broken.push(("index.html/below".to_owned(), b"x".to_vec()));
    assert!(release(public.path(), "book", &broken).is_err());
    assert_eq!(names(&public.path().join("releases")).len(), 1, "nothing half-written is left");
    assert_eq!(fs::read(public.path().join("book/index.html")).unwrap(), b"old");

    // What a killed run of another process leaves.
    let releases = public.path().join("releases");
    let left = releases.join(".book-0123456789ab.4194999.tmp");
    fs::create_dir(&left).unwrap();
    fs::write(left.join(MARKER), "site book\nhash x\n").unwrap();
    fs::write(left.join("index.html"), b"half").unwrap();
    let unmarked = releases.join(".book-0123456789ab.4194998.tmp");
    fs::create_dir(&unmarked).unwrap();
    release(public.path(), "book", &files("new")).unwrap();
    assert!(!left.exists() && unmarked.exists());
    assert_eq!(fs::read(public.path().join("book/index.html")).unwrap(), b"new");
}

#[test]
fn a_reader_never_sees_a_site_that_is_not_whole() {
    let public = tempfile::tempdir().unwrap();
    release(public.path(), "book", &files("0")).unwrap();
    let link = public.path().join("book");
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for number in 1..30 {
                let text = format!("{}", number % 5);
                release(public.path(), "book", &files(&text)).unwrap();
            }
        });
        while !writer.is_finished() {
            // Resolved once, as a server does with the folder that it has open.
            let Ok(folder) = fs::canonicalize(&link) else { continue };
            for name in ["index.html", "assets/style.css", "en/q/a/index.html"] {
                // A release may age out while it is read, after two more are published.
                let gone = !folder.exists();
                assert!(gone || folder.join(name).exists() || !folder.exists(), "{name}");
            }
        }
    });
}

#[test]
fn paths_that_lead_out_are_refused() {
    let public = tempfile::tempdir().unwrap();
    for path in ["../x", "/x", "a/../../x", "", "a//b", ".hidden", "a\\b", "c:x"] {
        let files = [(path.to_owned(), Vec::new())];
        assert!(
            matches!(release(public.path(), "book", &files), Err(PublishError::Path { .. })),
            "{path}"
        );
    }
    for id in ["", "..", "a/b", "A", "releases"] {
        assert!(matches!(release(public.path(), id, &[]), Err(PublishError::Id { .. })), "{id}");
    }
}

#[test]
fn a_public_folder_that_cannot_be_written_is_named_with_the_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("public");
    fs::write(&file, b"").unwrap();
    let message = release(&file, "book", &files("one")).unwrap_err().to_string();
    assert!(message.contains("public") && message.contains("choose another path"), "{message}");
}
