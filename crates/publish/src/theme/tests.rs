use std::collections::BTreeMap;

use super::*;

/// Every string by its path, with the places to be filled in it.
fn strings(language: &str) -> BTreeMap<String, Vec<String>> {
    let text = MESSAGES.get_file(format!("{language}.toml")).unwrap().contents_utf8().unwrap();
    let mut strings = BTreeMap::new();
    collect("", &toml::Value::Table(toml::from_str(text).unwrap()), &mut strings);
    strings
}

fn collect(path: &str, value: &toml::Value, strings: &mut BTreeMap<String, Vec<String>>) {
    match value {
        toml::Value::Table(table) => {
            for (key, value) in table {
                collect(&format!("{path}.{key}"), value, strings);
            }
        }
        toml::Value::Array(array) => {
            for (at, value) in array.iter().enumerate() {
                collect(&format!("{path}[{at}]"), value, strings);
            }
        }
        toml::Value::String(text) => {
            assert!(!text.trim().is_empty() || path == ".number.group", "{path} is empty");
            let mut places: Vec<String> = text
                .split('{')
                .skip(1)
                .filter_map(|rest| Some(rest.split_once('}')?.0.to_owned()))
                .collect();
            places.sort();
            strings.insert(path.to_owned(), places);
        }
        _ => {
            strings.insert(path.to_owned(), Vec::new());
        }
    }
}

#[test]
fn all_languages_say_the_same_things() {
    let english = strings("en");
    assert!(english.len() > 50);
    for language in ["fr", "el"] {
        assert_eq!(strings(language), english, "{language}");
    }
}

#[test]
fn a_language_without_messages_is_named_with_the_remedy() {
    let message = Theme::built_in().unwrap().messages("xx").unwrap_err().to_string();
    assert!(message.contains("\"xx\"") && message.contains("el, en, fr"), "{message}");
}

#[test]
fn the_links_lead_to_assets() {
    let theme = Theme::built_in().unwrap();
    let paths: Vec<&str> = theme.assets().iter().map(|asset| asset.path.as_str()).collect();
    let links = theme.links();
    for link in [&links.style, &links.script, &links.icon] {
        assert!(paths.contains(&link.as_str()), "{link} is not in {paths:?}");
    }
}

#[test]
fn assets_ask_for_nothing_from_elsewhere() {
    for asset in Theme::built_in().unwrap().assets() {
        let text = String::from_utf8_lossy(&asset.bytes).replace("http://www.w3.org/2000/svg", "");
        for outside in ["http:", "https:", "url(", "@import", "<script", "eval(", "innerHTML"] {
            assert!(!text.contains(outside), "{}: {outside}", asset.path);
        }
    }
}

#[test]
fn a_folder_is_put_over_what_is_compiled_in() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| write_atomic(&folder.path().join(name), text.as_bytes());
    write("pages/404.html", "<p>{{ frame.m.missing.title }}</p>").unwrap();
    write("messages/en.toml", "[missing]\ntitle = \"Lost?\"\n").unwrap();
    write("site/style.css", "p { color: red }").unwrap();
    write("site/logo.svg", "<svg/>").unwrap();
    write("pages/.404.html.swp", "{{").unwrap();
    let theme = Theme::load(folder.path()).unwrap();
    let page = Value::from_pairs([("m", theme.messages("en").unwrap())]);
    let page = theme.render("404.html", Value::from_pairs([("frame", page)])).unwrap();
    assert_eq!(page, "<p>Lost?</p>");
    let style = theme.assets().iter().find(|asset| asset.path == theme.links().style).unwrap();
    assert_eq!(&*style.bytes, b"p { color: red }");
    assert!(theme.assets().iter().any(|asset| asset.path.starts_with("assets/logo.")));
    assert_ne!(theme.links().style, Theme::built_in().unwrap().links().style);
}

#[test]
fn faults_of_a_theme_are_named_with_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let load = || Theme::load(folder.path()).unwrap_err().to_string();
    let message = load();
    assert!(message.contains("pages/") && message.contains("eject"), "{message}");
    for (name, text, expected) in [
        ("messages/fr.toml", "[missing]\ntitel = \"x\"", "missing.titel"),
        ("messages/fr.toml", "[missing]\ntitle = 3", "string"),
        ("messages/fr.toml", "missing", "messages/fr.toml"),
        ("pages/404.html", "{% block %}", "pages/404.html"),
    ] {
        let path = folder.path().join(name);
        write_atomic(&path, text.as_bytes()).unwrap();
        let message = load();
        assert!(message.contains(expected) && message.contains(name), "{message}");
        fs::remove_file(path).unwrap();
    }
}

#[test]
fn what_is_ejected_is_the_same_theme_and_nothing_is_written_over() {
    let folder = tempfile::tempdir().unwrap();
    let names = Theme::eject(folder.path()).unwrap();
    assert!(names.contains(&"pages/base.html".to_owned()), "{names:?}");
    assert!(names.contains(&"messages/el.toml".to_owned()));
    let theme = Theme::load(folder.path()).unwrap();
    assert_eq!(theme.links().style, Theme::built_in().unwrap().links().style);
    let message = Theme::eject(folder.path()).unwrap_err().to_string();
    assert!(message.contains("pages/") && message.contains("another folder"), "{message}");
}
