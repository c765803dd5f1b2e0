//! Names that are safe as part of an address and of a path, on any host and file system.

use std::collections::{BTreeMap, BTreeSet};

use florilegium_files::sha256_hex;
use florilegium_fold::fold;

/// Characters of a slug; a longer one is cut.
const LONGEST: usize = 60;
/// Characters of the hash that tells two names apart.
const HASH: usize = 8;

/// Names that Windows keeps for devices, with any extension: a site may be copied there.
fn is_reserved(slug: &str) -> bool {
    let device = |stem: &str| {
        slug.strip_prefix(stem)
            .is_some_and(|rest| rest.len() == 1 && rest.bytes().all(|b| b.is_ascii_digit()))
    };
    matches!(slug, "con" | "prn" | "aux" | "nul" | "index") || device("com") || device("lpt")
}

/// What an id becomes in an address: itself, but for the names that some systems reserve.
pub(crate) fn of_id(id: &str) -> String {
    if is_reserved(id) || id.len() > 2 * LONGEST { with_hash(&cut(id), id) } else { id.to_owned() }
}

/// A slug for each name. Equal names have one, different names different ones; a name that shares its
/// letters with another, or has none, carries a hash.
pub(crate) fn assign<'a>(names: impl IntoIterator<Item = &'a str>) -> BTreeMap<String, String> {
    let names: BTreeSet<&str> = names.into_iter().collect();
    let mut by_slug: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for name in names {
        by_slug.entry(letters(name)).or_default().push(name);
    }
    let mut slugs = BTreeMap::new();
    for (slug, names) in by_slug {
        let alone = names.len() == 1 && !slug.is_empty() && !is_reserved(&slug);
        for name in names {
            let whole = alone && slug.len() <= LONGEST;
            let slug = if whole { slug.clone() } else { with_hash(&cut(&slug), name) };
            slugs.insert(name.to_owned(), slug);
        }
    }
    slugs
}

fn cut(slug: &str) -> String {
    let end = slug.len().min(LONGEST);
    slug.get(..end).unwrap_or_default().trim_end_matches('-').to_owned()
}

fn with_hash(slug: &str, name: &str) -> String {
    let hash = sha256_hex(name.as_bytes());
    let hash = hash.get(..HASH).unwrap_or(&hash);
    // The letter keeps the hash from being read as another slug's.
    if slug.is_empty() { format!("x-{hash}") } else { format!("{slug}-x{hash}") }
}

/// The letters a to z and digits of a name, folded, Greek ones as they are usually romanised, parted by
/// hyphens.
fn letters(name: &str) -> String {
    let mut slug = String::new();
    let mut gap = false;
    for c in fold(name).chars() {
        let roman: &str = match c {
            'a'..='z' | '0'..='9' => &c.to_string(),
            'α' => "a",
            'β' => "v",
            'γ' => "g",
            'δ' => "d",
            'ε' => "e",
            'ζ' => "z",
            'η' | 'ι' => "i",
            'θ' => "th",
            'κ' => "k",
            'λ' => "l",
            'μ' => "m",
            'ν' => "n",
            'ξ' => "x",
            'ο' | 'ω' => "o",
            'π' => "p",
            'ρ' => "r",
            'σ' => "s",
            'τ' => "t",
            'υ' => "y",
            'φ' => "f",
            'χ' => "ch",
            'ψ' => "ps",
            _ => "",
        };
        if roman.is_empty() {
            gap = true;
            continue;
        }
        if gap && !slug.is_empty() {
            slug.push('-');
        }
        gap = false;
        slug.push_str(roman);
    }
    slug
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn slugs(names: &[&str]) -> Vec<String> {
        let slugs = assign(names.iter().copied());
        names.iter().map(|&name| slugs[name].clone()).collect()
    }

    #[test]
    fn names_are_readable() {
        assert_eq!(
            slugs(&["Sécurité réseau", "λόγος", "a/b.html", "C++"]),
            ["securite-reseau", "logos", "a-b-html", "c"]
        );
    }

    #[test]
    fn slugs_that_collide_after_folding_are_told_apart() {
        let two = slugs(&["Été", "ete", "C", "C++"]);
        let distinct: BTreeSet<&String> = two.iter().collect();
        assert_eq!(distinct.len(), 4, "{two:?}");
        assert!(two[0].starts_with("ete-x") && two[1].starts_with("ete-x"), "{two:?}");
    }

    #[test]
    fn names_that_differ_only_in_case_are_told_apart() {
        let two = slugs(&["a.html", "A.html"]);
        assert_ne!(two[0], two[1]);
        assert_eq!(two[0].to_lowercase(), two[0], "so that no file system takes them for one");
    }

    #[test]
    fn a_name_that_folds_to_nothing_has_a_slug() {
        let odd = slugs(&["?!", "", "東京", "…"]);
        assert_eq!(odd.iter().collect::<BTreeSet<_>>().len(), 4, "{odd:?}");
        assert!(odd.iter().all(|slug| slug.starts_with("x-")), "{odd:?}");
    }

    #[test]
    fn long_names_are_cut_and_stay_apart() {
        let long = "ω".repeat(200);
        let longer = "ω".repeat(201);
        let two = slugs(&[&long, &longer]);
        assert_ne!(two[0], two[1]);
        assert!(two.iter().all(|slug| slug.len() < 80), "{two:?}");
        let psi = slugs(&[&"ψ".repeat(200)]);
        assert!(psi[0].len() < 80, "{psi:?}");
    }

    #[test]
    fn reserved_names_are_never_used() {
        for name in ["con", "AUX", "nul", "Com1", "lpt9"] {
            let slug = &slugs(&[name])[0];
            assert!(slug.contains("-x"), "{slug}");
        }
        assert_ne!(of_id("aux"), "aux");
        assert_eq!(of_id("auxiliary"), "auxiliary");
    }

    proptest! {
        #[test]
        fn slugs_are_safe_and_distinct(names in prop::collection::btree_set("\\PC{0,80}", 0..20)) {
            let slugs = assign(names.iter().map(String::as_str));
            prop_assert_eq!(slugs.len(), names.len());
            let distinct: BTreeSet<&String> = slugs.values().collect();
            prop_assert_eq!(distinct.len(), names.len());
            for slug in slugs.values() {
                let sound = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
                prop_assert!(!slug.is_empty() && slug.bytes().all(sound) && slug.len() < 80);
                prop_assert!(!slug.starts_with('-') && !slug.ends_with('-'));
            }
        }
    }
}
