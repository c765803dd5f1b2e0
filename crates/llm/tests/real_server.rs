//! A real llama.cpp server: it decides as the in-process engine does, writes only what the schema
//! admits, and may die in the middle of the work.

#![allow(clippy::unwrap_used)]

mod support;

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use florilegium_llm::schedule::decide_many;
use florilegium_llm::{Deadline, Engine, Generation, LlmError};
use support::{
    HOSTILE, LlamaServer, NOISE, PASSAGES, asked, decision, open, passage, quotations, soon,
};

/// One server at a time: the machine may have two cores.
static ALONE: Mutex<()> = Mutex::new(());

const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn a_server_decides_as_the_engine_in_this_process_and_reuses_what_it_has_computed() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(server) = LlamaServer::start(2, 4096) else { return };
    let engine = server.engine(PATIENCE);
    let facts = engine.facts();
    assert_eq!((facts[0].slots, facts[0].context), (2, 2048), "{facts:?}");
    let decisions: Vec<_> =
        PASSAGES.iter().flat_map(|passage| asked(passage, "When was the lamp lit?")).collect();
    let (there, cost) = engine.decide(decisions.clone(), soon()).unwrap();
    let local = open(4096, 512).unwrap();
    let (here, local_cost) = local.decide(decisions, soon()).unwrap();
    assert_eq!(cost.prompt_tokens, local_cost.prompt_tokens, "the same tokens are sent");
    assert_eq!(cost.decisions, local_cost.decisions);
    assert!(cost.computed_tokens * 2 < cost.prompt_tokens, "{cost:?}");
    for (there, here) in there.iter().zip(&here) {
        assert!((there.first() - here.first()).abs() < NOISE, "{there:?} {here:?}");
        assert!((there.mass - here.mass).abs() < NOISE, "{there:?} {here:?}");
    }
    // Several questions at once, put together by passage.
    let questions: Vec<Vec<_>> = ["When was the lamp lit?", "When did it burn?"]
        .iter()
        .map(|question| PASSAGES.iter().flat_map(|passage| asked(passage, question)).collect())
        .collect();
    let decided = decide_many(&engine, &questions, 8, PATIENCE);
    for (question, decided) in questions.into_iter().zip(decided) {
        let (here, _) = local.decide(question, soon()).unwrap();
        for (there, here) in decided.unwrap().0.iter().zip(&here) {
            assert!((there.first() - here.first()).abs() < NOISE, "{there:?} {here:?}");
        }
    }
}

#[test]
fn a_prompt_that_is_too_long_is_named_and_harms_nothing() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(server) = LlamaServer::start(2, 1024) else { return };
    let engine = server.engine(PATIENCE);
    let error = engine.decide(vec![decision("word ".repeat(900))], soon()).unwrap_err();
    assert!(
        matches!(error, LlmError::PromptTooLong { tokens, limit: 512 } if tokens > 900),
        "{error}"
    );
    engine.decide(vec![decision("word".into())], soon()).unwrap();
}

#[test]
fn hostile_passages_are_text_and_what_is_written_stays_inside_the_schema() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(server) = LlamaServer::start(2, 4096) else { return };
    let engine = server.engine(PATIENCE);
    let local = open(4096, 512).unwrap();
    let decisions: Vec<_> =
        HOSTILE.iter().map(|hostile| decision(format!("Passage:\n{hostile}\n\nIs it?"))).collect();
    let (_, there) = engine.decide(decisions.clone(), soon()).unwrap();
    let (_, here) = local.decide(decisions, soon()).unwrap();
    assert_eq!(there.prompt_tokens, here.prompt_tokens, "nothing is taken for markup");
    // Some of the hostile texts have no form that a sentence could have; they are quoted all the same.
    let passages = [passage(&HOSTILE[..4]), passage(&HOSTILE[4..])];
    let schema = std::sync::Arc::new(quotations(&passages));
    let written = engine
        .generate(
            Generation {
                system: "Quote.".into(),
                user: HOSTILE.join("\n"),
                schema: schema.clone(),
                allowance: 600,
            },
            soon(),
        )
        .unwrap();
    schema.check(&written.value).unwrap();
    assert!(!written.retried && written.decoded_tokens > 10, "{written:?}");
}

#[test]
fn a_server_that_dies_in_the_middle_of_twenty_questions_loses_none_of_them() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(server) = LlamaServer::start(2, 4096) else { return };
    let engine = server.engine(PATIENCE);
    let next = std::sync::atomic::AtomicUsize::new(0);
    let results: Mutex<Vec<(usize, Result<u64, LlmError>)>> = Mutex::default();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                loop {
                    let question = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    if question >= 20 {
                        return;
                    }
                    let text = format!("What happened in {}?", 1860 + question);
                    let decisions = asked(PASSAGES[question % 3], &text);
                    let decided = engine.decide(decisions, Deadline::after(PATIENCE * 3));
                    let decided = decided.map(|(judgements, cost)| {
                        assert_eq!(judgements.len(), 4);
                        cost.decisions
                    });
                    results.lock().unwrap().push((question, decided));
                }
            });
        }
        while results.lock().unwrap().len() < 5 {
            std::thread::sleep(Duration::from_millis(20));
        }
        let port = server.kill();
        std::thread::sleep(Duration::from_secs(20));
        let again = LlamaServer::restart(port, 2, 4096);
        while results.lock().unwrap().len() < 20 {
            std::thread::sleep(Duration::from_millis(50));
        }
        drop(again);
    });
    let mut results = results.into_inner().unwrap();
    results.sort_by_key(|(question, _)| *question);
    let questions: Vec<usize> = results.iter().map(|(question, _)| *question).collect();
    assert_eq!(questions, (0..20).collect::<Vec<_>>(), "each once, none lost");
    // Twenty seconds are within the patience: every question has its answer.
    for (question, result) in results {
        assert_eq!(result, Ok(4), "{question}");
    }
}
