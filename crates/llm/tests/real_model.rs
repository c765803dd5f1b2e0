//! The in-process engine with a real model: what is shared must not change what is decided.

#![allow(clippy::unwrap_used)]

mod support;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use florilegium_llm::local::{Local, LocalConfig};
use florilegium_llm::schedule::decide_many;
use florilegium_llm::{Deadline, Decision, Engine, Generation, LlmError, Schema};
use support::{HOSTILE, MARKUP, NOISE, PASSAGES, asked, decision, open, passage, quotations, soon};

/// Passages with their questions, and sentences below them, as the stages ask about them. Several
/// share a few words more than their passage: too few to be computed apart, enough to mislead.
fn decisions() -> Vec<Decision> {
    PASSAGES.iter().flat_map(|passage| asked(passage, "When was the lamp lit?")).collect()
}

#[test]
fn decisions_taken_together_are_those_taken_alone() {
    for (context, batch) in [(4096, 512), (2048, 64)] {
        let Some(engine) = open(context, batch) else { return };
        let decisions = decisions();
        let (together, cost) = engine.decide(decisions.clone(), soon()).unwrap();
        let (again, second) = engine.decide(decisions.clone(), soon()).unwrap();
        assert!(cost.computed_tokens * 2 < cost.prompt_tokens, "{cost:?}");
        assert!(second.computed_tokens < cost.computed_tokens, "what was kept is used: {second:?}");
        for (at, decision) in decisions.into_iter().enumerate() {
            let fresh = open(context, batch).unwrap();
            let (alone, _) = fresh.decide(vec![decision], soon()).unwrap();
            for shared in [&together[at], &again[at]] {
                let difference = (shared.first() - alone[0].first()).abs();
                assert!(difference < NOISE, "{at}: {shared:?} and {:?}", alone[0]);
            }
        }
    }
}

#[test]
fn a_full_memory_forgets_and_goes_on() {
    // Room for about two of the prompts.
    let Some(engine) = open(512, 64) else { return };
    let (tight, _) = engine.decide(decisions(), soon()).unwrap();
    let (wide, _) = open(4096, 512).unwrap().decide(decisions(), soon()).unwrap();
    for (tight, wide) in tight.iter().zip(&wide) {
        assert!((tight.first() - wide.first()).abs() < NOISE, "{tight:?} {wide:?}");
    }
}

#[test]
fn what_does_not_fit_or_takes_too_long_fails_by_name_and_harms_nothing() {
    let Some(engine) = open(512, 64) else { return };
    let long = decision("word ".repeat(2000));
    let failed = engine.decide(vec![long], soon()).unwrap_err();
    assert!(
        matches!(failed, LlmError::PromptTooLong { tokens, limit: 512 } if tokens > 2000),
        "{failed}"
    );
    let late = engine.decide(decisions(), Deadline::after(Duration::ZERO)).unwrap_err();
    assert!(matches!(late, LlmError::Deadline(_)), "{late}");
    engine.decide(decisions(), soon()).unwrap();
}

#[test]
fn settings_that_would_abort_the_process_are_refused() {
    let Some(engine) = open(1024, 64) else { return };
    drop(engine);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("broken.gguf");
    std::fs::write(&path, b"GGUF but not really").unwrap();
    let config = |path: &Path, context, batch| LocalConfig {
        threads: Some(1),
        context,
        batch,
        ..LocalConfig::new(path.to_owned(), "broken")
    };
    let message = Local::open(config(&path, 512, 64)).unwrap_err().to_string();
    assert!(message.contains("broken"), "{message}");
    let message = Local::open(config(&path, 512, 16)).unwrap_err().to_string();
    assert!(message.contains("batch"), "{message}");
    let message = Local::open(config(&path, 512, 1024)).unwrap_err().to_string();
    assert!(message.contains("batch"), "{message}");
}

#[test]
fn markup_in_a_passage_is_text() {
    let Some(engine) = open(2048, 256) else { return };
    let tokens = |text: String| {
        let (_, cost) = engine.decide(vec![decision(text)], soon()).unwrap();
        cost.prompt_tokens
    };
    let plain = tokens("Is snow white?".into());
    for mark in MARKUP {
        // As markup each would be one token; as text each is several.
        let hostile = tokens(format!("Is snow white?{}", mark.repeat(10)));
        assert!(hostile >= plain + 20, "{mark}: {plain} {hostile}");
    }
}

#[test]
fn what_is_written_about_hostile_passages_stays_inside_the_schema() {
    let Some(engine) = open(4096, 256) else { return };
    let passages = [passage(&HOSTILE[..4]), passage(&HOSTILE[4..])];
    let schema = Arc::new(quotations(&passages));
    for user in HOSTILE {
        let user = format!("{user}\n\nQuote from the passages.");
        let (system, allowance) = ("Quote.".into(), 1000);
        let generation = Generation { system, user, schema: schema.clone(), allowance };
        schema.check(&engine.generate(generation, soon()).unwrap().value).unwrap();
    }
}

#[test]
fn most_of_a_quotation_is_fed_and_not_decoded_token_by_token() {
    let Some(engine) = open(4096, 256) else { return };
    let texts = [
        "The lamp of the lighthouse was lit for the first time in the summer of 1873.",
        "The lamp had been brought from Marseille on a ship that sank on its way home.",
        "Nobody on the island had ever seen a light that could be seen from nine leagues away.",
        "Ο φάρος άναψε για πρώτη φορά το καλοκαίρι του 1873.",
    ];
    let schema = Arc::new(quotations(&[passage(&texts[..3]), passage(&texts[3..])]));
    let generation = Generation {
        system: "Quote the sentences that answer the question, as JSON.".into(),
        user: format!(
            "Passage 1: {}\nPassage 2: {}\nWhen was it lit?",
            texts[..3].join(" "),
            texts[3]
        ),
        schema,
        allowance: 600,
    };
    let first = engine.generate(generation.clone(), soon()).unwrap();
    assert!(first.decoded_tokens * 5 < first.fed_tokens, "{first:?}");
    // The prompt has stayed in memory, and what was written has not.
    let again = engine.generate(generation.clone(), soon()).unwrap();
    assert!(again.cost.computed_tokens + 20 < first.cost.computed_tokens, "{again:?}");
    assert_eq!(again.value["answerable"], first.value["answerable"]);
    let error = engine.generate(Generation { allowance: 4, ..generation }, soon()).unwrap_err();
    assert_eq!(error, LlmError::Truncated { engine: "smollm2".into(), tokens: 8 });
}

#[test]
fn free_text_is_well_formed_and_as_long_as_allowed() {
    let Some(engine) = open(1024, 256) else { return };
    let schema = Arc::new(Schema::Object(vec![("claim".into(), Schema::Text { longest: 40 })]));
    let user = "Γράψε μια πρόταση για τον φάρο, με «εισαγωγικά».".to_owned();
    let generation = Generation {
        system: "Answer in Greek.".into(),
        user,
        schema: schema.clone(),
        allowance: 200,
    };
    let written = engine.generate(generation, soon()).unwrap();
    schema.check(&written.value).unwrap();
}

#[test]
fn a_passage_that_was_asked_about_before_is_taken_from_the_shelf() {
    let Some(engine) = open(4096, 256) else { return };
    let long = |text: &str| text.repeat(4);
    let ask = |engine: &Local, passage: &str, question: &str| {
        let (mut judged, cost) = engine.decide(asked(&long(passage), question), soon()).unwrap();
        (judged.swap_remove(0).first(), cost)
    };
    let question = "Who lit the lamp?";
    let (first, cost) = ask(&engine, PASSAGES[0], "When was the lamp lit?");
    // Other passages: the memory is emptied, and what was in it goes to the shelf.
    ask(&engine, PASSAGES[2], "When was the lamp lit?");
    let (again, from_shelf) = ask(&engine, PASSAGES[0], question);
    assert!(from_shelf.computed_tokens * 3 < cost.computed_tokens * 2, "{from_shelf:?} {cost:?}");
    let (alone, _) = ask(&open(4096, 256).unwrap(), PASSAGES[0], question);
    assert!((again - alone).abs() < NOISE, "{again} {alone} {first}");
}

#[test]
fn what_was_computed_before_a_restart_is_used_after_it_unless_it_is_damaged() {
    let Some(path) = support::model() else { return };
    let folder = tempfile::tempdir().unwrap();
    let computed = |question: &str| {
        let config = LocalConfig {
            threads: Some(1),
            context: 2048,
            states: Some(folder.path().to_owned()),
            ..LocalConfig::new(path.clone(), "smollm2")
        };
        let engine = Local::open(config).unwrap();
        let passage = PASSAGES[0].repeat(4);
        engine.decide(asked(&passage, question), soon()).unwrap().1.computed_tokens
    };
    let first = computed("When was the lamp lit?");
    let again = computed("Who lit the lamp?");
    assert!(again * 3 < first * 2, "{again} {first}");
    let of_model = std::fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap().path();
    for state in std::fs::read_dir(&of_model).unwrap() {
        let state = state.unwrap().path();
        let mut bytes = std::fs::read(&state).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        std::fs::write(&state, bytes).unwrap();
    }
    let damaged = computed("Who built the lamp?");
    assert!(damaged * 10 > first * 9, "{damaged} {first}");
}

#[test]
fn many_questions_by_passage_are_judged_as_one_by_one() {
    let Some(engine) = open(4096, 256) else { return };
    let questions: Vec<Vec<Decision>> = ["When was the lamp lit?", "How many books are there?"]
        .iter()
        .map(|question| PASSAGES.iter().flat_map(|p| asked(p, question)).collect())
        .collect();
    let together = decide_many(&engine, &questions, 16, Duration::from_secs(300));
    let mut cost = florilegium_llm::Cost::default();
    for (question, decided) in questions.iter().zip(together) {
        let fresh = open(4096, 256).unwrap();
        let (alone, _) = fresh.decide(question.clone(), soon()).unwrap();
        let (judgements, spent) = decided.unwrap();
        cost += spent;
        for (together, alone) in judgements.iter().zip(&alone) {
            assert!((together.first() - alone.first()).abs() < NOISE, "{together:?} {alone:?}");
        }
    }
    assert!(cost.computed_tokens * 2 < cost.prompt_tokens, "{cost:?}");
}
