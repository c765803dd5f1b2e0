//! Patterns of the `exclude` list: `*` stands for any run of characters, `/` included.

/// Whether `pattern` covers the file at `path` (relative, with `/`). A pattern without `/` is held
/// against the file's name alone, one with `/` against the whole path.
pub(crate) fn covers(pattern: &str, path: &str) -> bool {
    let subject =
        if pattern.contains('/') { path } else { path.rsplit('/').next().unwrap_or(path) };
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = subject.strip_prefix(first) else {
        return false;
    };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::covers;

    #[test]
    fn names_and_paths() {
        assert!(covers("index.html", "index.html"));
        assert!(covers("index.html", "deep/er/index.html"));
        assert!(!covers("index.html", "my-index.html"));
        assert!(covers("ap*.html", "guide/apa.html"));
        assert!(covers("*", "anything"));
        assert!(covers("a/*", "a/b/c.html"));
        assert!(!covers("a/*", "b/a.html"));
        assert!(covers("*a*b*", "xxaxxbxx"));
        assert!(!covers("*a*b", "xxaxxbxx"));
        assert!(!covers("a*a", "a"));
        assert!(covers("é*.html", "été/éa.html"));
    }
}
