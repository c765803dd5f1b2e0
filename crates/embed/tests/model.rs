//! Checks with the real model. They run where its files are: in the folder that the environment
//! variable `FLORILEGIUM_MODELS` names, or else in `data/cache/models` of this workspace.

#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use florilegium_embed::{Arithmetic, EmbedConfig, EmbedError, Embedder};
use proptest::prelude::*;
use serde::Deserialize;

const WEIGHTS: &str = "e5-small-q4.bin";
const TOKENIZER: &str = "multilingual-e5-small-tokenizer.json";

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn config() -> Option<EmbedConfig> {
    let folder = std::env::var_os("FLORILEGIUM_MODELS")
        .map_or_else(|| workspace().join("data/cache/models"), PathBuf::from);
    let (weights, tokenizer) = (folder.join(WEIGHTS), folder.join(TOKENIZER));
    if weights.exists() && tokenizer.exists() {
        return Some(EmbedConfig::new(weights, tokenizer));
    }
    eprintln!("skipped: no {WEIGHTS} and {TOKENIZER} in {}", folder.display());
    None
}

/// The engine with default settings, opened once for all tests.
fn embedder() -> Option<&'static Embedder> {
    static EMBEDDER: OnceLock<Option<Embedder>> = OnceLock::new();
    EMBEDDER.get_or_init(|| config().map(|config| Embedder::open(&config).unwrap())).as_ref()
}

fn dot(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
}

fn furthest(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

fn passages(embedder: &Embedder, texts: &[&str]) -> Vec<Vec<f32>> {
    embedder.passages(texts, &mut |_, _| {}).unwrap()
}

/// A text and what the C engine of the packed bundle makes of it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Golden {
    text: String,
    tokens: usize,
    first: [f32; 8],
    vector_e4: Vec<i32>,
}

fn golden() -> Vec<Golden> {
    let path = workspace().join("data/fixtures/embed/golden.json");
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

fn check_golden(embedder: &Embedder) {
    let golden = golden();
    assert_eq!(golden.len(), 24);
    let texts: Vec<&str> = golden.iter().map(|entry| entry.text.as_str()).collect();
    for (entry, vector) in golden.iter().zip(passages(embedder, &texts)) {
        assert_eq!(embedder.count_tokens(&entry.text), entry.tokens, "{}", entry.text);
        let theirs: Vec<f32> = entry.vector_e4.iter().map(|&x| x as f32 / 1e4).collect();
        assert_eq!(theirs.len(), vector.len());
        let cosine = dot(&vector, &theirs) / dot(&theirs, &theirs).sqrt();
        assert!(cosine >= 0.995, "cosine {cosine} for {}", entry.text);
        let apart = furthest(&vector[..8], &entry.first);
        assert!(apart < 0.012, "first values {apart} apart for {}", entry.text);
    }
}

#[test]
fn vectors_are_those_of_the_bundles_own_engine() {
    if let Some(embedder) = embedder() {
        check_golden(embedder);
    }
}

#[test]
fn so_are_they_with_quantized_arithmetic() {
    if let Some(config) = config() {
        let config = EmbedConfig { arithmetic: Arithmetic::Quantized, ..config };
        let quantized = Embedder::open(&config).unwrap();
        check_golden(&quantized);
        if let Some(embedder) = embedder() {
            assert_ne!(embedder.model_hash(), quantized.model_hash());
        }
        let texts = golden();
        let together =
            passages(&quantized, &texts.iter().map(|e| e.text.as_str()).collect::<Vec<_>>());
        for (entry, vector) in texts.iter().zip(&together) {
            let alone = &passages(&quantized, &[&entry.text])[0];
            assert!(furthest(alone, vector) <= 1e-5, "{}", entry.text);
        }
    }
}

#[test]
fn meaning_is_near_across_languages() {
    let Some(embedder) = embedder() else { return };
    let question = embedder.question("Who gave the night watchman the key?").unwrap();
    let texts = [
        "Le gardien de nuit reçut la clé des mains du sacristain.",
        "Ο νυχτοφύλακας πήρε το κλειδί από τον νεωκόρο.",
        "La récolte de cette année fut mauvaise à cause de la pluie.",
        "Η σοδειά ήταν κακή εξαιτίας της βροχής.",
    ];
    let near: Vec<f64> = passages(embedder, &texts).iter().map(|v| dot(v, &question)).collect();
    let far = near[2].max(near[3]);
    assert!(near[0] > far && near[1] > far, "{near:?}");
}

#[test]
fn a_question_and_a_passage_are_not_the_same() {
    let Some(embedder) = embedder() else { return };
    let text = "the night watchman";
    let question = embedder.question(text).unwrap();
    assert!(dot(&question, &passages(embedder, &[text])[0]) < 0.999);
}

#[test]
fn too_long_and_empty_are_errors_that_say_so() {
    let Some(embedder) = embedder() else { return };
    let long = ["word"; 10_000].join(" ");
    let error = embedder.question(&long).unwrap_err().to_string();
    assert!(error.contains("the question has 10005 tokens, the limit is 512"), "{error}");
    let error = embedder.passages(&["fine", &long], &mut |_, _| {}).unwrap_err();
    assert!(matches!(&error, EmbedError::TooLong { tokens: 10004, limit: 512, .. }), "{error}");
    assert!(error.to_string().contains("passage 2"), "{error}");
    for empty in ["", " \t\n", "\u{a0}"] {
        assert!(matches!(embedder.question(empty), Err(EmbedError::Empty { .. })));
        let error = embedder.passages(&["fine", empty], &mut |_, _| {}).unwrap_err().to_string();
        assert!(error.contains("passage 2 is empty"), "{error}");
    }
    // What has no words but is something has a vector.
    assert!(embedder.question("?!…").is_ok());
    assert!(embedder.question(&"x".repeat(100_000)).is_err());
}

#[test]
fn the_limit_is_the_last_that_fits() {
    let Some(embedder) = embedder() else { return };
    let text = ["word"; 508].join(" ");
    assert_eq!(embedder.count_tokens(&text), 512);
    assert_eq!(passages(embedder, &[&text])[0].len(), embedder.dimension());
    assert!(embedder.passages(&[&(text + " word")], &mut |_, _| {}).is_err());
}

#[test]
fn no_passages_are_no_vectors() {
    let Some(embedder) = embedder() else { return };
    assert!(passages(embedder, &[]).is_empty());
}

#[test]
fn progress_counts_to_the_end() {
    let Some(embedder) = embedder() else { return };
    let texts: Vec<String> = (0..120).map(|n| format!("Sentence number {n}. ").repeat(8)).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let expected: usize = texts.iter().map(|text| embedder.count_tokens(text)).sum();
    let mut seen = Vec::new();
    embedder.passages(&texts, &mut |texts, tokens| seen.push((texts, tokens))).unwrap();
    assert!(seen.len() > 1 && seen.is_sorted());
    assert_eq!(seen.last(), Some(&(120, expected)));
}

#[test]
fn the_number_of_threads_does_not_matter() {
    let (Some(embedder), Some(config)) = (embedder(), config()) else { return };
    let one = Embedder::open(&EmbedConfig { threads: Some(1), ..config.clone() }).unwrap();
    let three = Embedder::open(&EmbedConfig { threads: Some(3), ..config }).unwrap();
    assert_eq!(one.model_hash(), embedder.model_hash());
    let golden = golden();
    let texts: Vec<&str> = golden.iter().map(|entry| entry.text.as_str()).collect();
    let expected = passages(embedder, &texts);
    for other in [&one, &three] {
        for (a, b) in expected.iter().zip(passages(other, &texts)) {
            assert!(furthest(a, &b) <= 1e-5);
        }
        let question = other.question(texts[1]).unwrap();
        assert!(furthest(&question, &embedder.question(texts[1]).unwrap()) <= 1e-5);
    }
}

#[test]
fn many_may_ask_at_once() {
    let Some(embedder) = embedder() else { return };
    let expected = embedder.question("Where is the key?").unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..3 {
                    let again = embedder.question("Where is the key?").unwrap();
                    assert!(furthest(&expected, &again) <= 1e-5);
                    passages(embedder, &["The key is here.", "The key is there."]);
                }
            });
        }
    });
}

#[test]
fn settings_that_make_no_sense_are_named() {
    let Some(config) = config() else { return };
    for max_tokens in [0, 4, 513] {
        let config = EmbedConfig { max_tokens, ..config.clone() };
        let error = Embedder::open(&config).unwrap_err().to_string();
        assert!(error.contains("`max_tokens`") && error.contains("512"), "{error}");
    }
    let config = EmbedConfig { threads: Some(0), ..config };
    assert!(Embedder::open(&config).unwrap_err().to_string().contains("`threads`"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn any_text_has_a_unit_vector_that_is_the_same_in_company(
        text in "(\\PC{1,120}|[a-zé ]{1,300}|[α-ω ]{1,200}|[一-十]{1,60})",
        company in prop::collection::vec("[a-zà-ÿ ]{1,200}", 1..6),
        place in 0usize..6,
    ) {
        let Some(embedder) = embedder() else { return Ok(()) };
        prop_assume!(!text.trim().is_empty());
        prop_assume!(embedder.count_tokens(&text) <= embedder.max_tokens());
        let alone = &passages(embedder, &[&text])[0];
        prop_assert!((dot(alone, alone).sqrt() - 1.0).abs() < 1e-5);
        let mut texts: Vec<&str> =
            company.iter().map(String::as_str).filter(|text| !text.trim().is_empty()).collect();
        let place = place.min(texts.len());
        texts.insert(place, &text);
        let together = &passages(embedder, &texts)[place];
        prop_assert!(furthest(alone, together) <= 1e-5);
    }
}
