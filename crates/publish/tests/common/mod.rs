//! A small site made by hand, for tests and for looking at.

use std::collections::BTreeMap;

use florilegium_publish::{
    CollectionFacts, ContextBlock, DocumentFacts, Entry, Facts, PassageFacts, Site, Standing, Theme,
};
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

pub fn source(number: usize, language: &str, document: &str, title: &str) -> Source {
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
        variants: vec![format!("{} (put otherwise)", answer.question)],
        tags: vec!["garden".to_owned()],
        answer,
        computed_on: "2026-11-30".to_owned(),
        standing: Standing::Current,
    }
}

fn documents() -> Vec<DocumentFacts> {
    let facts = |language: &str, name: &str, title: &str, author: Option<&str>| DocumentFacts {
        id: format!("{language}/{name}"),
        collection: format!("gardens-{language}"),
        title: title.to_owned(),
        author: author.map(str::to_owned),
        date: author.map(|_| "1911".to_owned()),
        edition: None,
        language: language.to_owned(),
        licence: None,
        url: format!("https://books.example/{language}/{name}.html"),
    };
    vec![
        facts("en", "roses", "Chapter 4. Roses", Some("A. Gardener")),
        facts("fr", "calendrier", "Le calendrier du jardinier", None),
        facts("fr", "eau", "Chapitre 7. L’eau", None),
        facts("el", "dentra", "Κεφάλαιο 2. Δέντρα", None),
    ]
}

/// The passages of the quotations in those documents, in what is around them.
fn passages() -> Vec<PassageFacts> {
    let all = [english(), french(), greek()];
    let quotations =
        all.iter().flat_map(|answer| &answer.groups).flat_map(|group| &group.quotations);
    let mut passages: BTreeMap<String, PassageFacts> = BTreeMap::new();
    for quotation in quotations.filter(|quotation| !quotation.document.starts_with("grc")) {
        let start = quotation.range.start - quotation.before.len();
        let text = format!("{}{}{}", quotation.before, quotation.text, quotation.after);
        let passage = PassageFacts {
            id: quotation.passage.clone(),
            document: quotation.document.clone(),
            headings: vec!["4.2. Pruning".to_owned()],
            language: quotation.language.clone(),
            range: start..start + text.len(),
            more: [true, false],
            pages: Some(("12".to_owned(), "13".to_owned())),
            url: quotation.url.clone(),
            blocks: vec![ContextBlock { heading: false, lines: false, start, text }],
        };
        passages.entry(quotation.passage.clone()).or_insert(passage);
    }
    passages.into_values().collect()
}

/// Six questions in three languages.
pub fn site() -> Site {
    let titles = [
        ("en", "The Gardener’s Florilegium"),
        ("fr", "Le florilège du jardinier"),
        ("el", "Το ανθολόγιο του κηπουρού"),
    ];
    let collection = |language: &str, answers| CollectionFacts {
        id: format!("gardens-{language}"),
        title: collection(language).to_owned(),
        language: language.to_owned(),
        answers,
        licence: "CC BY-SA 3.0".to_owned(),
        documents: 14,
        passages: 2_417,
        words: 188_250,
    };
    let mut stale = entry("arroser", french());
    stale.standing = Standing::Stale;
    Site {
        id: "gardens".to_owned(),
        title: titles
            .map(|(tag, title)| (tag.to_owned(), title.to_owned()))
            .into_iter()
            .collect::<BTreeMap<_, _>>(),
        languages: ["en", "fr", "el"].map(str::to_owned).to_vec(),
        base_path: "/".to_owned(),
        base_url: Some("https://gardens.example/".to_owned()),
        live: Some("ask".to_owned()),
        renamed: BTreeMap::new(),
        documents: documents(),
        passages: passages(),
        theme: Theme::built_in().expect("the theme"),
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
            relevant: 6,
            sentences: 8,
            quotations: 5,
            relevant_at: 0.3,
            answer_at: 0.55,
            show_at: 0.5,
            lexical_weight: 0.4,
            context: 8192,
            servers: 0,
            deadline_seconds: 300,
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

/// The same with a page of every kind: a retired question, a renamed one, one in a script that runs
/// from right to left.
pub fn every_kind() -> Site {
    let mut site = site();
    let mut withdrawn = entry("withdrawn", unanswered("May one prune by moonlight?", "en"));
    withdrawn.answer.nearest.clear();
    withdrawn.computed_on.clear();
    withdrawn.standing = Standing::Retired;
    let mut foreign = answer(
        "What does the Mishnah say of gardens?",
        "en",
        vec![group(
            "כלאים",
            &["פרק ג"],
            vec![quotation(
                1,
                "he",
                "kilayim",
                ["", "עֲרוּגָה שֶׁהִיא שִׁשָּׁה עַל שִׁשָּׁה טְפָחִים, זוֹרְעִים בְּתוֹכָהּ חֲמִשָּׁה זֵרְעוֹנִים.", ""],
            )],
        )],
        vec![source(1, "he", "kilayim", "כלאים")],
    );
    foreign.counts.shown = 1;
    site.entries.push(withdrawn);
    site.entries.push(entry("right-to-left", foreign));
    site.renamed.insert("old-name".to_owned(), "prune-roses".to_owned());
    site
}
