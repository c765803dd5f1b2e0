//! What hosts are told: headers, redirects, robots, sitemaps.

use std::fmt::Write;

use crate::site::Chrome;
use crate::text::escape;

/// Addresses in one sitemap file; the protocol allows 50,000.
const PER_SITEMAP: usize = 40_000;

/// The policy under which the pages work: nothing from elsewhere, nothing inline. A live server on
/// another host may be asked.
pub fn content_security_policy(live: Option<&str>) -> String {
    let origin = live.filter(|live| live.contains("://")).map(|live| {
        let end = live.match_indices('/').nth(2).map_or(live.len(), |(at, _)| at);
        format!(" {}", live.get(..end).unwrap_or_default())
    });
    let origin =
        origin.filter(|origin| !origin.contains([';', ',', '\n', '"'])).unwrap_or_default();
    format!(
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
         form-action 'self'{origin}; base-uri 'none'; frame-ancestors 'none'"
    )
}

/// Whether the content at a path never changes: the path carries a hash of it.
pub fn is_immutable(path: &str) -> bool {
    let path = path.trim_start_matches('/');
    path.starts_with("assets/") || (path.starts_with("edge/") && path.matches('/').count() > 1)
}

/// A file for hosts that read one (Netlify, Cloudflare Pages).
pub(crate) fn headers(chrome: &Chrome) -> String {
    let policy = content_security_policy(chrome.live.as_deref());
    let base = format!("/{}", chrome.base_path.trim_matches('/'));
    let base = base.trim_end_matches('/');
    let immutable = "  ! Cache-Control\n  Cache-Control: public, max-age=31536000, immutable\n";
    format!(
        "{base}/*\n  Content-Security-Policy: {policy}\n  X-Content-Type-Options: nosniff\n  \
         Referrer-Policy: no-referrer\n  Cache-Control: public, max-age=300\n\
         {base}/assets/*\n{immutable}{base}/edge/*\n{immutable}\
         {base}/edge/root.flx\n  ! Cache-Control\n  Cache-Control: no-cache\n"
    )
}

/// A file for the same hosts, with the addresses that have changed.
pub(crate) fn redirects(chrome: &Chrome, moved: &[(String, String)]) -> String {
    let base = format!("/{}", chrome.base_path.trim_matches('/'));
    let base = base.trim_end_matches('/');
    let mut text = String::new();
    for (from, to) in moved {
        let _ = writeln!(text, "{base}/{from} {base}/{to} 301");
    }
    text
}

pub(crate) fn robots(chrome: &Chrome) -> String {
    let base = format!("/{}", chrome.base_path.trim_matches('/'));
    let base = base.trim_end_matches('/');
    let mut text =
        format!("User-agent: *\nAllow: {base}/\nDisallow: {base}/ask\nDisallow: {base}/search\n");
    if let Some(sitemap) = chrome.address("sitemap.xml") {
        let _ = writeln!(text, "Sitemap: {sitemap}");
    }
    text
}

/// An address in the sitemap.
pub(crate) struct Mapped {
    pub(crate) path: String,
    /// An ISO date, or nothing.
    pub(crate) changed: String,
}

/// The sitemap; in several files with an index when it is large. None without whole addresses.
pub(crate) fn sitemaps(chrome: &Chrome, pages: &[Mapped]) -> Vec<(String, String)> {
    const OPENING: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
    const NAMESPACE: &str = "xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\"";
    if chrome.base_url.is_none() {
        return Vec::new();
    }
    let address = |path: &str| escape(&chrome.address(path).unwrap_or_default());
    let is_date = |date: &str| {
        date.len() == 10 && date.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-')
    };
    let file = |pages: &[Mapped]| {
        let mut text = format!("{OPENING}<urlset {NAMESPACE}>\n");
        for page in pages {
            let _ = write!(text, "<url><loc>{}</loc>", address(&page.path));
            if is_date(&page.changed) {
                let _ = write!(text, "<lastmod>{}</lastmod>", page.changed);
            }
            text.push_str("</url>\n");
        }
        text + "</urlset>\n"
    };
    if pages.len() <= PER_SITEMAP {
        return vec![("sitemap.xml".to_owned(), file(pages))];
    }
    let mut files = Vec::new();
    let mut index = format!("{OPENING}<sitemapindex {NAMESPACE}>\n");
    for (number, pages) in pages.chunks(PER_SITEMAP).enumerate() {
        let path = format!("sitemap-{}.xml", number + 1);
        let _ = writeln!(index, "<sitemap><loc>{}</loc></sitemap>", address(&path));
        files.push((path, file(pages)));
    }
    files.push(("sitemap.xml".to_owned(), index + "</sitemapindex>\n"));
    files
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::theme::Theme;

    fn chrome() -> Chrome {
        let theme = Theme::built_in().unwrap();
        let mut chrome = Chrome::new([].into(), vec!["en".into()], theme);
        chrome.base_url = Some("https://a.example/b/".into());
        chrome.base_path = "/b".into();
        chrome
    }

    #[test]
    fn a_live_server_elsewhere_may_be_asked_and_nothing_else() {
        assert!(content_security_policy(None).contains("form-action 'self';"));
        assert!(content_security_policy(Some("ask")).contains("form-action 'self';"));
        let policy = content_security_policy(Some("https://live.example:8080/ask"));
        assert!(policy.contains("form-action 'self' https://live.example:8080;"), "{policy}");
        let policy = content_security_policy(Some("https://x; script-src */"));
        assert!(!policy.contains('*'), "{policy}");
        assert!(!policy.contains("unsafe"));
    }

    #[test]
    fn only_what_carries_a_hash_is_kept_for_ever() {
        assert!(is_immutable("/assets/style.0011.css") && is_immutable("edge/00ff/e-0.flx"));
        assert!(!is_immutable("/edge/root.flx") && !is_immutable("/en/") && !is_immutable("/"));
    }

    #[test]
    fn a_large_sitemap_is_parted() {
        let mapped = |n: usize| Mapped { path: format!("en/q/{n}/"), changed: "2026-11-30".into() };
        let pages: Vec<Mapped> = (0..PER_SITEMAP + 1).map(mapped).collect();
        let files = sitemaps(&chrome(), &pages);
        let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["sitemap-1.xml", "sitemap-2.xml", "sitemap.xml"]);
        assert!(files[2].1.contains("<loc>https://a.example/b/sitemap-2.xml</loc>"));
        assert_eq!(files[0].1.matches("<url>").count(), PER_SITEMAP);
        assert!(sitemaps(&chrome(), &pages[..3])[0].1.contains("<lastmod>2026-11-30</lastmod>"));
    }

    #[test]
    fn robots_and_redirects_know_the_path_of_the_site() {
        assert!(robots(&chrome()).contains("Sitemap: https://a.example/b/sitemap.xml"));
        assert!(robots(&chrome()).contains("Disallow: /b/ask"));
        let moved = [("en/q/old/".to_owned(), "en/q/new/".to_owned())];
        assert_eq!(redirects(&chrome(), &moved), "/b/en/q/old/ /b/en/q/new/ 301\n");
    }
}
