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
    let folder = release(public.path(), "book", &files("one"), &Settings::default()).unwrap();
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
    let folder = release(public.path(), "book", &files("one"), &Settings::default()).unwrap();
    let times = || {
        ["index.html", MARKER, "assets/style.css"]
            .map(|name| folder.join(name).metadata().unwrap().modified().unwrap())
    };
    let before = times();
    std::thread::sleep(Duration::from_millis(20));
    let mut other_order = files("one");
    other_order.reverse();
    assert_eq!(release(public.path(), "book", &other_order, &Settings::default()).unwrap(), folder);
    assert_eq!(times(), before);
}

#[test]
fn an_altered_file_is_put_back() {
    let public = tempfile::tempdir().unwrap();
    let folder = release(public.path(), "book", &files("one"), &Settings::default()).unwrap();
    fs::write(folder.join("index.html"), b"altered").unwrap();
    fs::remove_file(folder.join("assets/style.css")).unwrap();
    release(public.path(), "book", &files("one"), &Settings::default()).unwrap();
    assert_eq!(fs::read(folder.join("index.html")).unwrap(), b"one");
    assert_eq!(fs::read(folder.join("assets/style.css")).unwrap(), b"p{}");
}

#[test]
fn the_last_three_are_kept_and_nothing_else_is_touched() {
    let public = tempfile::tempdir().unwrap();
    let other = release(public.path(), "book-two", &files("other"), &Settings::default()).unwrap();
    let foreign = public.path().join("releases/book-0123456789ab");
    fs::create_dir(&foreign).unwrap();
    let mut folders = Vec::new();
    for (number, text) in ["1", "2", "3", "4", "5"].into_iter().enumerate() {
        folders.push(release(public.path(), "book", &files(text), &Settings::default()).unwrap());
        age(&folders[number], 10 - number as u64);
    }
    let there: Vec<bool> = folders.iter().map(|folder| folder.exists()).collect();
    assert_eq!(there, [false, false, true, true, true]);
    assert!(other.exists(), "another site's release");
    assert!(foreign.exists(), "a folder without the marker");

    // Publishing an older one again makes it the latest.
    release(public.path(), "book", &files("3"), &Settings::default()).unwrap();
    release(public.path(), "book", &files("6"), &Settings::default()).unwrap();
    assert!(folders[2].exists() && !folders[3].exists());
}

#[test]
fn a_folder_that_is_not_ours_is_refused_and_left() {
    let public = tempfile::tempdir().unwrap();
    let link = public.path().join("book");
    fs::create_dir(&link).unwrap();
    fs::write(link.join("mine"), b"x").unwrap();
    let message = release(public.path(), "book", &files("one"), &Settings::default())
        .unwrap_err()
        .to_string();
    assert!(message.contains("is a folder") && message.contains("move it away"), "{message}");
    assert_eq!(names(public.path()), ["book"], "nothing was written");

    fs::remove_dir_all(&link).unwrap();
    fs::write(&link, b"x").unwrap();
    let message = release(public.path(), "book", &files("one"), &Settings::default())
        .unwrap_err()
        .to_string();
    assert!(message.contains("is a file"), "{message}");

    fs::remove_file(&link).unwrap();
    std::os::unix::fs::symlink("elsewhere", &link).unwrap();
    let message = release(public.path(), "book", &files("one"), &Settings::default())
        .unwrap_err()
        .to_string();
    assert!(message.contains("a link to somewhere else"), "{message}");
}

#[test]
fn a_run_that_failed_leaves_the_old_site_and_the_next_clears_up() {
    let public = tempfile::tempdir().unwrap();
    release(public.path(), "book", &files("old"), &Settings::default()).unwrap();
    // A file and a folder of one name: the writing fails half way.
    let mut broken = files("new");
    broken.push(("index.html/below".to_owned(), b"x".to_vec()));
    assert!(release(public.path(), "book", &broken, &Settings::default()).is_err());
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
    fs::write(unmarked.join("mine"), b"x").unwrap();
    let begun = releases.join(".book-0123456789ab.4194997.tmp");
    fs::create_dir(&begun).unwrap();
    fs::write(begun.join("..florilegium-release.4194997.0.tmp"), b"si").unwrap();
    release(public.path(), "book", &files("new"), &Settings::default()).unwrap();
    assert!(!left.exists() && !begun.exists() && unmarked.exists());
    assert_eq!(fs::read(public.path().join("book/index.html")).unwrap(), b"new");
}

/// A site whose page names its style and whose index names its part; all differ by `n`.
fn numbered(n: usize) -> Vec<(String, Vec<u8>)> {
    let page = format!("<link href=assets/style.{n}.css> {}", "text ".repeat(200));
    vec![
        (format!("assets/style.{n}.css"), format!("p {{ order: {n} }}").into_bytes()),
        (format!("edge/{n:016x}/e-0.flx"), format!("{n}").into_bytes()),
        ("index.html".to_owned(), page.into_bytes()),
        ("en/same.html".to_owned(), "the same in all releases ".repeat(60).into_bytes()),
        ("edge/root.flx".to_owned(), format!("{n:016x}").into_bytes()),
    ]
}

/// What a browser does: fetches a page and the index's root by their addresses, then what they name.
/// Returns the addresses that were named.
fn visit(site: &Path) -> Vec<String> {
    let page = fs::read_to_string(site.join("index.html")).unwrap();
    let style = page.split(['=', '>']).nth(1).unwrap().to_owned();
    let root = fs::read_to_string(site.join("edge/root.flx")).unwrap();
    let part = format!("edge/{root}/e-0.flx");
    for named in [&style, &part] {
        assert!(site.join(named).is_file(), "{named} is not there");
    }
    assert_eq!(
        usize::from_str_radix(&root, 16).unwrap().to_string(),
        fs::read_to_string(site.join(&part)).unwrap()
    );
    vec![style, part]
}

fn settings(layout: Layout) -> Settings {
    Settings { layout, ..Settings::default() }
}

/// Publishes and is killed after `steps` steps, in which a client reads. True if it came to the end.
fn killed_after(
    steps: usize,
    public: &Path,
    n: usize,
    layout: Layout,
    client: &(dyn Fn() + Sync),
) -> bool {
    let left = std::sync::atomic::AtomicUsize::new(steps);
    let watch = |_: &str| {
        client();
        let order = std::sync::atomic::Ordering::SeqCst;
        match left.fetch_update(order, order, |left| left.checked_sub(1)) {
            Ok(_) => Ok(()),
            Err(_) => Err(PublishError::NoLanguage),
        }
    };
    match release_watched(public, "book", &numbered(n), &settings(layout), &watch) {
        Ok(_) => true,
        Err(PublishError::NoLanguage) => false,
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn killed_between_any_two_steps_it_leaves_a_site_that_is_whole() {
    for layout in [Layout::Link, Layout::InPlace] {
        for steps in 0.. {
            assert!(steps < 200, "it never comes to an end");
            let public = tempfile::tempdir().unwrap();
            let site = public.path().join("book");
            release(public.path(), "book", &numbered(1), &settings(layout)).unwrap();
            release(public.path(), "book", &numbered(2), &settings(layout)).unwrap();
            let held = visit(&site);
            let client = || {
                visit(&site);
                for named in &held {
                    assert!(
                        site.join(named).is_file(),
                        "{named} was named by a page already fetched"
                    );
                }
            };
            let ended = killed_after(steps, public.path(), 3, layout, &client);
            client();
            // The next run comes to the end, and clears away what was left.
            release(public.path(), "book", &numbered(3), &settings(layout)).unwrap();
            client();
            assert!(visit(&site)[0].contains(".3."), "{layout:?} {steps}");
            let left = names(&public.path().join("releases"));
            assert!(left.iter().all(|name| !name.ends_with(".tmp")), "{left:?}");
            if ended {
                assert!(steps > 5, "{layout:?}: {steps} steps");
                break;
            }
        }
    }
}

#[test]
fn a_process_that_is_killed_leaves_a_site_that_is_whole() {
    const PUBLIC: &str = "FLORILEGIUM_TEST_PUBLIC";
    if let Some(public) = std::env::var_os(PUBLIC) {
        for n in 0.. {
            release(Path::new(&public), "book", &numbered(n % 7), &Settings::default()).unwrap();
        }
    }
    let public = tempfile::tempdir().unwrap();
    release(public.path(), "book", &numbered(0), &Settings::default()).unwrap();
    let site = public.path().join("book");
    for round in 0..12 {
        let mut child = std::process::Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "release::tests::a_process_that_is_killed_leaves_a_site_that_is_whole",
            ])
            .env(PUBLIC, public.path())
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(15 + 11 * round));
        assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
        child.kill().unwrap();
        child.wait().unwrap();
        visit(&site);
    }
    release(public.path(), "book", &numbered(9), &Settings::default()).unwrap();
    let left = names(&public.path().join("releases"));
    assert!(left.iter().all(|name| !name.ends_with(".tmp")), "{left:?}");
    assert!(left.len() <= RELEASES_KEPT, "{left:?}");
}

#[test]
fn unchanged_files_are_hard_links_and_packed_forms_too() {
    use std::os::unix::fs::MetadataExt;
    let public = tempfile::tempdir().unwrap();
    let one = release(public.path(), "book", &numbered(1), &Settings::default()).unwrap();
    let two = release(public.path(), "book", &numbered(2), &Settings::default()).unwrap();
    let inode = |folder: &Path, name: &str| folder.join(name).metadata().unwrap().ino();
    for name in ["en/same.html", "en/same.html.gz", "en/same.html.br", "en/same.html.zst"] {
        assert_eq!(inode(&one, name), inode(&two, name), "{name}");
    }
    assert_ne!(inode(&one, "index.html"), inode(&two, "index.html"));
    // One that was altered is not taken over, nor is its packed form.
    fs::remove_file(two.join("en/same.html.gz")).unwrap();
    fs::write(two.join("en/same.html.gz"), b"altered").unwrap();
    let three = release(public.path(), "book", &numbered(3), &Settings::default()).unwrap();
    assert_eq!(
        fs::read(three.join("en/same.html.gz")).unwrap(),
        fs::read(one.join("en/same.html.gz")).unwrap()
    );
}

#[test]
fn the_same_files_make_the_same_bytes_wherever_they_are_published() {
    let tree = |n: usize, before: Option<usize>| {
        let public = tempfile::tempdir().unwrap();
        if let Some(before) = before {
            release(public.path(), "book", &numbered(before), &Settings::default()).unwrap();
        }
        let folder = release(public.path(), "book", &numbered(n), &Settings::default()).unwrap();
        let (sums, _) = read_sums(&folder.join(SUMS));
        for (path, sum) in &sums {
            assert_eq!(sha256_hex(&fs::read(folder.join(path)).unwrap()), *sum, "{path}");
        }
        (folder.file_name().unwrap().to_owned(), sums)
    };
    assert_eq!(tree(1, None), tree(1, Some(2)));
}

#[test]
fn a_release_carries_the_assets_of_the_one_before_and_of_no_other() {
    let public = tempfile::tempdir().unwrap();
    for n in 1..=3 {
        release(public.path(), "book", &numbered(n), &Settings::default()).unwrap();
    }
    assert_eq!(names(&public.path().join("book/assets")), ["style.2.css", "style.3.css"]);
    assert_eq!(names(&public.path().join("book/edge")).len(), 3);
}

#[test]
fn in_place_the_files_are_those_of_the_release_and_nothing_older() {
    let public = tempfile::tempdir().unwrap();
    let site = public.path().join("book");
    let mut first = numbered(1);
    first.push(("en/q/gone/index.html".to_owned(), b"gone".to_vec()));
    release(public.path(), "book", &first, &settings(Layout::InPlace)).unwrap();
    assert!(site.join("en/q/gone/index.html").is_file());
    fs::write(site.join("mine.txt"), b"the operator's own").unwrap();
    release(public.path(), "book", &numbered(2), &settings(Layout::InPlace)).unwrap();
    release(public.path(), "book", &numbered(3), &settings(Layout::InPlace)).unwrap();
    assert!(!site.join("en/q").exists(), "an empty folder goes with its page");
    assert!(site.join("mine.txt").is_file(), "what we did not write stays");
    assert_eq!(names(&site.join("assets")), ["style.2.css", "style.3.css"]);
    assert!(site.symlink_metadata().unwrap().is_dir());
    let known = releases(public.path(), "book", Layout::InPlace).unwrap();
    assert_eq!(known.iter().filter(|release| release.current).count(), 1);

    // A folder with files of someone else's is refused.
    let other = tempfile::tempdir().unwrap();
    fs::create_dir(other.path().join("book")).unwrap();
    fs::write(other.path().join("book/index.html"), b"mine").unwrap();
    let message =
        release(other.path(), "book", &numbered(1), &settings(Layout::InPlace)).unwrap_err();
    assert!(message.to_string().contains("no release has put there"), "{message}");
    assert_eq!(fs::read(other.path().join("book/index.html")).unwrap(), b"mine");
}

#[test]
fn rollback_goes_back_and_further_back() {
    for layout in [Layout::Link, Layout::InPlace] {
        let public = tempfile::tempdir().unwrap();
        let site = public.path().join("book");
        let missing = rollback(public.path(), "book", layout, None).unwrap_err().to_string();
        assert!(missing.contains("not published") && missing.contains("--list"), "{missing}");
        let mut folders = Vec::new();
        for n in 1..=3 {
            folders.push(release(public.path(), "book", &numbered(n), &settings(layout)).unwrap());
            age(&folders[n - 1], 10 - n as u64);
        }
        for n in [2, 1] {
            rollback(public.path(), "book", layout, None).unwrap();
            assert!(visit(&site)[0].contains(&format!(".{n}.")), "{layout:?} {n}");
        }
        let end = rollback(public.path(), "book", layout, None).unwrap_err().to_string();
        assert!(end.contains("before the current one"), "{end}");
        let third = folders[2].file_name().unwrap().to_str().unwrap();
        assert_eq!(rollback(public.path(), "book", layout, Some(third)).unwrap(), third);
        assert!(visit(&site)[0].contains(".3."));
        let message = rollback(public.path(), "book", layout, Some("book-../../x")).unwrap_err();
        assert!(message.to_string().contains("there is no release"), "{message}");
        // Publishing goes on from there.
        release(public.path(), "book", &numbered(4), &settings(layout)).unwrap();
        assert!(visit(&site)[0].contains(".4."));
    }
}

#[test]
fn as_many_releases_are_kept_as_are_asked_for() {
    let public = tempfile::tempdir().unwrap();
    let settings = Settings { keep: 1, ..Settings::default() };
    for n in 1..=3 {
        release(public.path(), "book", &numbered(n), &settings).unwrap();
        assert_eq!(names(&public.path().join("releases")).len(), 1);
    }
}

#[test]
fn permissions_follow_the_umask() {
    use std::os::unix::fs::PermissionsExt;
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let mask = status.lines().find_map(|line| line.strip_prefix("Umask:")).unwrap().trim();
    let mask = u32::from_str_radix(mask, 8).unwrap();
    let public = tempfile::tempdir().unwrap();
    let folder = release(public.path(), "book", &numbered(1), &Settings::default()).unwrap();
    let mode = |name: &str| folder.join(name).metadata().unwrap().permissions().mode() & 0o777;
    for name in ["index.html", "en/same.html.gz", SUMS, MARKER] {
        assert_eq!(mode(name), 0o666 & !mask, "{name}");
    }
    assert_eq!(mode("en"), 0o777 & !mask);
}

#[test]
fn a_public_folder_that_is_a_link_is_followed() {
    let folder = tempfile::tempdir().unwrap();
    let real = folder.path().join("real");
    fs::create_dir(&real).unwrap();
    let public = folder.path().join("public");
    std::os::unix::fs::symlink(&real, &public).unwrap();
    release(&public, "book", &numbered(1), &Settings::default()).unwrap();
    visit(&real.join("book"));

    // In place, the site itself may be the operator's link to where the host wants it.
    let host = folder.path().join("host");
    fs::create_dir(&host).unwrap();
    let public = folder.path().join("other");
    fs::create_dir(&public).unwrap();
    std::os::unix::fs::symlink(&host, public.join("book")).unwrap();
    for n in 1..=2 {
        release(&public, "book", &numbered(n), &settings(Layout::InPlace)).unwrap();
    }
    visit(&host);
    let message =
        release(&public, "book", &numbered(3), &Settings::default()).unwrap_err().to_string();
    assert!(message.contains("a link to somewhere else"), "{message}");
}

#[test]
fn a_site_on_another_file_system_is_copied() {
    use std::os::unix::fs::MetadataExt;
    let public = tempfile::tempdir().unwrap();
    let Ok(host) = tempfile::tempdir_in("/dev/shm") else {
        println!("skipped: there is no /dev/shm");
        return;
    };
    let device = |path: &Path| path.metadata().unwrap().dev();
    if device(public.path()) == device(host.path()) {
        println!("skipped: /dev/shm is on the file system of the temporary folder");
        return;
    }
    std::os::unix::fs::symlink(host.path(), public.path().join("book")).unwrap();
    for n in 1..=2 {
        release(public.path(), "book", &numbered(n), &settings(Layout::InPlace)).unwrap();
        visit(host.path());
    }
}

/// A file system of 256 kB, unmounted at the end.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn mount() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let mounted = std::process::Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=256k", "none"])
            .arg(folder.path())
            .stderr(std::process::Stdio::null())
            .status();
        mounted.is_ok_and(|status| status.success()).then_some(SmallDisk(folder))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg(self.0.path()).status();
    }
}

#[test]
fn a_full_disk_is_named_and_the_old_site_stays() {
    let Some(disk) = SmallDisk::mount() else {
        println!("skipped: this user may not mount a small file system");
        return;
    };
    let public = disk.0.path().join("public");
    release(&public, "book", &numbered(1), &Settings::default()).unwrap();
    let mut large = numbered(2);
    for n in 0..40 {
        large.push((format!("en/{n}.bin"), vec![n; 10_000]));
    }
    let message = release(&public, "book", &large, &Settings::default()).unwrap_err().to_string();
    assert!(message.contains("free some space"), "{message}");
    assert!(visit(&public.join("book"))[0].contains(".1."));
    let left = names(&public.join("releases"));
    assert_eq!(left.len(), 1, "what was half written is gone: {left:?}");
}

#[test]
fn a_folder_that_may_not_be_written_is_named_with_the_remedy() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let public = folder.path().join("public");
    fs::create_dir(&public).unwrap();
    fs::set_permissions(&public, fs::Permissions::from_mode(0o555)).unwrap();
    if fs::write(public.join("probe"), b"").is_ok() {
        println!("skipped: this user may write everywhere");
        return;
    }
    let message =
        release(&public, "book", &numbered(1), &Settings::default()).unwrap_err().to_string();
    assert!(message.contains("may write to"), "{message}");
}

#[test]
fn paths_that_lead_out_are_refused() {
    let public = tempfile::tempdir().unwrap();
    for path in ["../x", "/x", "a/../../x", "", "a//b", ".hidden", "a\\b", "c:x"] {
        let files = [(path.to_owned(), Vec::new())];
        assert!(
            matches!(
                release(public.path(), "book", &files, &Settings::default()),
                Err(PublishError::Path { .. })
            ),
            "{path}"
        );
    }
    for id in ["", "..", "a/b", "A", "releases"] {
        assert!(
            matches!(
                release(public.path(), id, &[], &Settings::default()),
                Err(PublishError::Id { .. })
            ),
            "{id}"
        );
    }
}

#[test]
fn a_public_folder_that_cannot_be_written_is_named_with_the_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("public");
    fs::write(&file, b"").unwrap();
    let message =
        release(&file, "book", &files("one"), &Settings::default()).unwrap_err().to_string();
    assert!(message.contains("public") && message.contains("choose another path"), "{message}");
}
