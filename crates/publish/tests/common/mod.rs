//! A small site made by hand, for tests and for looking at.

use std::collections::BTreeMap;

use florilegium_publish::{CollectionFacts, Entry, Facts, Site};
use florilegium_synthesis::answer::{Answer, Counts, Excerpt, Group, Quotation, Source};

/// A quotation with what stands around it in its passage.
pub fn quotation(
    source: usize,
    language: &str,
    document: &str,
    [before, text, after]: [&str; 3],
) -> Quotation {
    Quotation {
        source,
        text: text.to_owned(),
        before: before.to_owned(),
        after: after.to_owned(),
        cut_before: false,
        cut_after: false,
        language: language.to_owned(),
        url: format!("https://books.example/{language}/{document}.html#place"),
        document: format!("{language}/{document}"),
        passage: format!("{language}/{document}/1"),
        range: 120 + before.len()..120 + before.len() + text.len(),
    }
}

fn source(number: usize, language: &str, document: &str, title: &str) -> Source {
    Source {
        number,
        document: format!("{language}/{document}"),
        title: title.to_owned(),
        collection: collection(language).to_owned(),
        language: language.to_owned(),
        licence: "CC BY-SA 3.0".to_owned(),
        url: format!("https://books.example/{language}/{document}.html"),
    }
}

fn collection(language: &str) -> &'static str {
    match language {
        "fr" => "Le livre des jardins",
        "el" | "grc" => "Το βιβλίο των κήπων",
        _ => "The book of gardens",
    }
}

/// An answer with these groups.
pub fn answer(question: &str, language: &str, groups: Vec<Group>, sources: Vec<Source>) -> Answer {
    let shown = groups.iter().map(|group| group.quotations.len()).sum();
    Answer {
        question: question.to_owned(),
        language: language.to_owned(),
        answered: true,
        mode: "degraded",
        groups,
        sources,
        nearest: Vec::new(),
        counts: Counts { retrieved: 12, relevant: 4, proposed: shown + 2, rejected: 2, shown },
        model: "qwen2.5-coder-1.5b-instruct-q4_k_m".to_owned(),
        corpus: "5b1f0e77c2a94d3386fe".to_owned(),
    }
}

/// A passage that is no answer.
pub fn excerpt(language: &str, title: &str, headings: &[&str], text: &str) -> Excerpt {
    Excerpt {
        passage: format!("{language}/water/3"),
        title: title.to_owned(),
        collection: collection(language).to_owned(),
        headings: headings.iter().map(|&heading| heading.to_owned()).collect(),
        text: text.to_owned(),
        language: language.to_owned(),
        licence: "CC BY-SA 3.0".to_owned(),
        url: format!("https://books.example/{language}/water.html#3"),
    }
}

fn group(title: &str, headings: &[&str], quotations: Vec<Quotation>) -> Group {
    Group {
        title: title.to_owned(),
        headings: headings.iter().map(|&heading| heading.to_owned()).collect(),
        quotations,
    }
}

pub fn english() -> Answer {
    answer(
        "When should an old rose be pruned, and how hard?",
        "en",
        vec![
            group(
                "Chapter 4. Roses",
                &["4.2. Pruning", "Old shrub roses"],
                vec![
                    quotation(
                        1,
                        "en",
                        "roses",
                        [
                            "A gardener who inherits an old hedge is tempted to cut it to the ground. ",
                            "Old roses that flower once are pruned just after they have flowered, and never by more than a third.",
                            " What is cut in winter would have borne the next summer's flowers.\n\nThe exception is a plant that has been neglected for many years.",
                        ],
                    ),
                    quotation(
                        1,
                        "en",
                        "roses",
                        [
                            "",
                            "Dead wood may be taken out at any time of the year.",
                            " Burn it, or carry it away.",
                        ],
                    ),
                ],
            ),
            group(
                "Chapter 4. Roses",
                &["4.3. Renewal"],
                vec![quotation(
                    1,
                    "en",
                    "roses",
                    [
                        "A neglected plant can be brought back in three years. ",
                        "Each winter, remove one third of the oldest stems at the base:\n\n– first those that cross;\n– then those without a young shoot.",
                        "",
                    ],
                )],
            ),
            group(
                "Le calendrier du jardinier",
                &["Février"],
                vec![quotation(
                    2,
                    "fr",
                    "calendrier",
                    [
                        "Le gel passé, on sort les outils. ",
                        "On taille les rosiers remontants quand les bourgeons gonflent, « à la fleur du forsythia », comme disent les anciens.",
                        " Les autres attendront l’été.",
                    ],
                )],
            ),
        ],
        vec![
            source(1, "en", "roses", "Chapter 4. Roses"),
            source(2, "fr", "calendrier", "Le calendrier du jardinier"),
        ],
    )
}

pub fn french() -> Answer {
    answer(
        "Pourquoi n’arrose-t-on pas un jardin en plein soleil ?",
        "fr",
        vec![group(
            "Chapitre 7. L’eau",
            &["7.1. Arroser"],
            vec![quotation(
                1,
                "fr",
                "eau",
                [
                    "",
                    "L’eau donnée à midi s’évapore avant d’avoir atteint les racines ; le soir, elle a toute la nuit pour descendre.",
                    " Le matin convient aussi, avant la chaleur.",
                ],
            )],
        )],
        vec![source(1, "fr", "eau", "Chapitre 7. L’eau")],
    )
}

pub fn greek() -> Answer {
    answer(
        "Πότε φυτεύεται η ελιά;",
        "el",
        vec![group(
            "Κεφάλαιο 2. Δέντρα",
            &["2.4. Η ελιά", "Φύτευση"],
            vec![
                quotation(
                    1,
                    "el",
                    "dentra",
                    [
                        "Η ελιά αντέχει στην ξηρασία αλλά όχι στον παγετό. ",
                        "Τα νεαρά δέντρα φυτεύονται την άνοιξη, όταν έχει περάσει ο κίνδυνος του παγετού.",
                        " Στα νησιά φυτεύονται και το φθινόπωρο.",
                    ],
                ),
                quotation(
                    2,
                    "grc",
                    "theophrastus",
                    ["", "φυτεύουσι δὲ τὴν ἐλάαν τοῦ ἦρος, ὅταν ᾖ ἡ γῆ ὀργῶσα.", ""],
                ),
            ],
        )],
        vec![
            source(1, "el", "dentra", "Κεφάλαιο 2. Δέντρα"),
            source(2, "grc", "theophrastus", "Περὶ φυτῶν"),
        ],
    )
}

pub fn unanswered(question: &str, language: &str) -> Answer {
    let nearest = match language {
        "fr" => excerpt(
            "fr",
            "Chapitre 7. L’eau",
            &["7.3. Les bassins"],
            "Un bassin donne de la fraîcheur à la terrasse et de l’eau aux oiseaux. On le creuse à l’automne.",
        ),
        "el" => excerpt(
            "el",
            "Κεφάλαιο 7. Νερό",
            &["7.3. Λίμνες"],
            "Μια μικρή λίμνη δροσίζει την αυλή και δίνει νερό στα πουλιά.",
        ),
        _ => excerpt(
            "en",
            "Chapter 7. Water",
            &["7.3. Ponds"],
            "A pond cools the terrace and gives the birds their water.\n\nIt is dug in autumn.",
        ),
    };
    Answer {
        answered: false,
        nearest: vec![nearest.clone(), nearest],
        counts: Counts { retrieved: 12, relevant: 0, ..Counts::default() },
        ..answer(question, language, Vec::new(), Vec::new())
    }
}

fn entry(id: &str, answer: Answer) -> Entry {
    Entry {
        id: id.to_owned(),
        lang: answer.language.clone(),
        tags: vec!["garden".to_owned()],
        answer,
        computed_on: "2026-11-30".to_owned(),
        stale: false,
    }
}

/// Five questions in three languages.
pub fn site() -> Site {
    let titles = [
        ("en", "The Gardener’s Florilegium"),
        ("fr", "Le florilège du jardinier"),
        ("el", "Το ανθολόγιο του κηπουρού"),
    ];
    let collection = |language: &str, answers| CollectionFacts {
        title: collection(language).to_owned(),
        language: language.to_owned(),
        answers,
        licence: "CC BY-SA 3.0".to_owned(),
        documents: 14,
        passages: 2_417,
        words: 188_250,
    };
    let mut stale = entry("arroser", french());
    stale.stale = true;
    Site {
        id: "gardens".to_owned(),
        title: titles
            .map(|(tag, title)| (tag.to_owned(), title.to_owned()))
            .into_iter()
            .collect::<BTreeMap<_, _>>(),
        languages: ["en", "fr", "el"].map(str::to_owned).to_vec(),
        base_path: "/".to_owned(),
        entries: vec![
            entry("prune-roses", english()),
            entry("moon", unanswered("Does the moon change how a lawn grows?", "en")),
            stale,
            entry("lune", unanswered("La lune fait-elle pousser le gazon ?", "fr")),
            entry("elia", greek()),
            entry("selini", unanswered("Επηρεάζει η σελήνη το γρασίδι;", "el")),
        ],
        facts: Facts {
            embedding_model: "multilingual-e5-small".to_owned(),
            dimension: 384,
            language_model: "qwen2.5-coder-1.5b-instruct-q4_k_m".to_owned(),
            mode: "degraded".to_owned(),
            passage_budget: 256,
            retrieved: 12,
            collections: vec![
                collection("en", true),
                collection("fr", true),
                collection("el", false),
            ],
            corpus: "5b1f0e77c2a94d3386fe".to_owned(),
            program: "0.1.0".to_owned(),
            made_on: "2026-11-30".to_owned(),
        },
    }
}
