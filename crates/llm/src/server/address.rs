//! One server: who it is, what it has taught us about its model, and how it is asked.

use std::collections::HashMap;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::http::{Client, Fault, Wait};
use super::{AddressConfig, locked};
use crate::{
    Choices, Cost, Deadline, Decision, Facts, Generation, Judgement, LlmError, choice_tokens,
    judgement, shortened,
};

/// How many of the likeliest tokens are asked for, and again if a choice is not among them.
const LIKELIEST: [usize; 2] = [40, 5000];
/// The most that servers of the OpenAI kind give.
const LIKELIEST_OPENAI: usize = 20;
/// Requests at a time for a server that does not say how many it takes.
const SLOTS: usize = 4;

/// What a server speaks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Kind {
    /// llama.cpp's server.
    #[default]
    #[serde(rename = "llama.cpp")]
    LlamaCpp,
    /// Any server with `/v1/chat/completions`, log-probabilities and JSON Schema.
    #[serde(rename = "openai")]
    OpenAi,
}

/// One server.
#[derive(Debug)]
pub(super) struct Address {
    client: Client,
    kind: Kind,
    model: String,
    slots: Option<usize>,
    facts: Mutex<Option<Facts>>,
}

/// What is known of the model's tokens; the same for all servers, which serve the same model.
#[derive(Debug, Default, Clone)]
pub(super) struct Learned {
    /// The markup before the instructions, between them and the request, and after it.
    frame: Option<[Vec<i64>; 3]>,
    choices: HashMap<Choices, Vec<Vec<i64>>>,
    /// The last instructions: all prompts of a run have the same.
    system: (String, Vec<i64>),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Away(problem)
            | Fault::Loading(problem)
            | Fault::Lost(problem)
            | Fault::Garbled(problem) => f.write_str(problem),
            Fault::Truncated(tokens) => write!(f, "cut off after {tokens} tokens"),
            Fault::Fatal(error) => error.fmt(f),
        }
    }
}

impl Address {
    pub fn new(config: AddressConfig) -> Self {
        Address {
            client: Client::new(&config.url, config.key, config.limits),
            kind: config.kind,
            model: config.model,
            slots: config.slots,
            facts: Mutex::new(None),
        }
    }

    pub fn url(&self) -> &str {
        &self.client.url
    }

    /// What it said last.
    pub fn facts(&self) -> Option<Facts> {
        locked(&self.facts).clone()
    }

    /// Asks the server who it is; an error if it serves another model.
    pub fn ask_facts(&self, deadline: Deadline) -> Result<Facts, Fault> {
        let size = |value: &Value| value.as_u64().and_then(|n| usize::try_from(n).ok());
        let (names, context, slots) = match self.kind {
            Kind::LlamaCpp => {
                self.client.get("/health", deadline)?;
                let said = self.client.get("/props", deadline)?;
                let names = vec![said["model_path"].clone(), said["model_alias"].clone()];
                let context = size(&said["default_generation_settings"]["n_ctx"]);
                (names, context, size(&said["total_slots"]))
            }
            Kind::OpenAi => {
                let said = self.client.get("/v1/models", deadline)?;
                let models = said["data"].as_array().cloned().unwrap_or_default();
                let names = models.iter().map(|model| model["id"].clone()).collect();
                (names, models.first().and_then(|model| size(&model["max_model_len"])), None)
            }
        };
        let names: Vec<&str> = names.iter().filter_map(Value::as_str).collect();
        if names.is_empty() {
            return Err(Fault::Garbled("it does not say which model it serves".into()));
        }
        let Some(found) = names.iter().find(|name| is_model(name, &self.model)) else {
            return Err(Fault::Fatal(self.wrong_model(names[0])));
        };
        let facts = Facts {
            place: self.url().to_owned(),
            model: (*found).to_owned(),
            context: context.unwrap_or(0),
            slots: slots.or(self.slots).unwrap_or(SLOTS).max(1),
        };
        *locked(&self.facts) = Some(facts.clone());
        Ok(facts)
    }

    fn wrong_model(&self, found: &str) -> LlmError {
        LlmError::WrongModel {
            address: self.url().to_owned(),
            expected: self.model.clone(),
            found: file_name(found).to_owned(),
        }
    }

    /// An answer that names another model comes from a server that was started anew with it: the
    /// server is asked who it is before it is used again.
    fn check_model(&self, answer: &Value) -> Result<(), Fault> {
        match answer["model"].as_str() {
            Some(found) if !is_model(found, &self.model) => {
                Err(Fault::Away(self.wrong_model(found).to_string()))
            }
            _ => Ok(()),
        }
    }

    /// Reads the probabilities of a decision's answers.
    pub fn judge(
        &self,
        learned: &Mutex<Arc<Learned>>,
        decision: &Decision,
        slot: usize,
        deadline: Deadline,
        cost: &mut Cost,
    ) -> Result<Judgement, Fault> {
        if self.kind == Kind::OpenAi {
            return self.judge_openai(decision, deadline, cost);
        }
        let choices = self.choices(learned, decision.choices, deadline)?;
        let prompt = self.prompt(learned, &decision.system, &decision.user, deadline)?;
        let mut judged = None;
        for likeliest in LIKELIEST {
            let body = json!({
                "prompt": prompt, "n_predict": 1, "n_probs": likeliest, "temperature": 0,
                "cache_prompt": true, "id_slot": slot,
            });
            let answer = self.client.post("/completion", &body, Wait::First, deadline)?;
            self.check_model(&answer)?;
            self.count(&answer, judged.is_none(), cost);
            let listed = likely(&answer["completion_probabilities"][0]["top_logprobs"], |token| {
                token["id"].as_i64()
            })?;
            let (judgement, all_seen) = weigh(&listed, &choices, |token, id| token == id);
            judged = Some(judgement);
            if all_seen {
                break;
            }
        }
        judged.ok_or_else(|| Fault::Garbled("no probabilities".into()))
    }

    fn judge_openai(
        &self,
        decision: &Decision,
        deadline: Deadline,
        cost: &mut Cost,
    ) -> Result<Judgement, Fault> {
        let mut body = self.chat(&decision.system, &decision.user);
        body["max_tokens"] = 1.into();
        body["logprobs"] = true.into();
        body["top_logprobs"] = LIKELIEST_OPENAI.into();
        let answer = self.client.post("/v1/chat/completions", &body, Wait::First, deadline)?;
        self.check_model(&answer)?;
        self.count(&answer, true, cost);
        let top = &answer["choices"][0]["logprobs"]["content"][0]["top_logprobs"];
        let listed = likely(top, |token| token["token"].as_str().map(str::to_owned))?;
        let choices: Vec<Vec<&str>> = decision.choices.iter().map(|c| c.to_vec()).collect();
        Ok(weigh(&listed, &choices, |token, spelling| token == spelling).0)
    }

    /// Has a structure written. Returns it, and the tokens it took.
    pub fn write(
        &self,
        learned: &Mutex<Arc<Learned>>,
        generation: &Generation,
        slot: usize,
        again: bool,
        deadline: Deadline,
        cost: &mut Cost,
    ) -> Result<(Value, u64), Fault> {
        let allowance = generation.allowance * if again { 2 } else { 1 };
        let (answer, text, cut_off, tokens);
        match self.kind {
            Kind::LlamaCpp => {
                let prompt =
                    self.prompt(learned, &generation.system, &generation.user, deadline)?;
                let body = json!({
                    "prompt": prompt, "n_predict": allowance, "temperature": 0,
                    "grammar": generation.schema.gbnf(), "cache_prompt": true, "id_slot": slot,
                });
                answer = self.client.post("/completion", &body, Wait::Whole, deadline)?;
                text = &answer["content"];
                cut_off = answer["stop_type"] == "limit";
                tokens = &answer["tokens_predicted"];
            }
            Kind::OpenAi => {
                let mut body = self.chat(&generation.system, &generation.user);
                body["max_tokens"] = allowance.into();
                let schema = generation.schema.json_schema();
                body["response_format"] = json!({
                    "type": "json_schema",
                    "json_schema": { "name": "answer", "strict": true, "schema": schema },
                });
                answer = self.client.post("/v1/chat/completions", &body, Wait::Whole, deadline)?;
                text = &answer["choices"][0]["message"]["content"];
                cut_off = answer["choices"][0]["finish_reason"] == "length";
                tokens = &answer["usage"]["completion_tokens"];
            }
        }
        self.check_model(&answer)?;
        self.count(&answer, true, cost);
        let text = text.as_str().ok_or_else(|| Fault::Garbled("the answer has no text".into()))?;
        match generation.schema.read(text) {
            Ok(value) => Ok((value, tokens.as_u64().unwrap_or(0))),
            Err(_) if cut_off => Err(Fault::Truncated(allowance)),
            Err(problem) => Err(Fault::Garbled(problem)),
        }
    }

    fn chat(&self, system: &str, user: &str) -> Value {
        let model = self.facts().map_or_else(|| self.model.clone(), |facts| facts.model);
        json!({
            "model": model, "temperature": 0, "messages": [
                { "role": "system", "content": without_markup(system) },
                { "role": "user", "content": without_markup(user) },
            ],
        })
    }

    /// Counts what a request cost, from what the server says; `first` unless the same prompt has
    /// been counted.
    fn count(&self, answer: &Value, first: bool, cost: &mut Cost) {
        let timings = &answer["timings"];
        let usage = &answer["usage"];
        let all = answer["tokens_evaluated"].as_u64().or(usage["prompt_tokens"].as_u64());
        let all = all.unwrap_or(0);
        let reused = usage["prompt_tokens_details"]["cached_tokens"].as_u64();
        let computed =
            timings["prompt_n"].as_u64().or(reused.map(|reused| all.saturating_sub(reused)));
        if first {
            cost.prompt_tokens += all;
        }
        cost.computed_tokens += computed.unwrap_or(all);
    }

    /// The tokens of a text; with `markup`, special tokens in it are that.
    fn tokens(
        &self,
        text: &str,
        begins: bool,
        markup: bool,
        deadline: Deadline,
    ) -> Result<Vec<i64>, Fault> {
        if text.is_empty() && !begins {
            return Ok(Vec::new());
        }
        let body = json!({ "content": text, "add_special": begins, "parse_special": markup });
        let answer = self.client.post("/tokenize", &body, Wait::First, deadline)?;
        let tokens = answer["tokens"].as_array().map(|list| list.iter().map(Value::as_i64));
        tokens
            .and_then(|tokens| tokens.collect::<Option<Vec<i64>>>())
            .ok_or_else(|| Fault::Garbled(format!("no tokens: {}", shortened(&answer.to_string()))))
    }

    /// The tokens of a prompt, as the in-process engine makes them: what the prompt says is
    /// tokenized as text, never as markup.
    fn prompt(
        &self,
        learned: &Mutex<Arc<Learned>>,
        system: &str,
        user: &str,
        deadline: Deadline,
    ) -> Result<Vec<i64>, Fault> {
        let mut known = locked(learned).clone();
        if known.frame.is_none() || known.system.0 != system {
            let mut new = (*known).clone();
            if new.frame.is_none() {
                new.frame = Some(self.frame(deadline)?);
            }
            new.system = (system.to_owned(), self.tokens(system, false, false, deadline)?);
            known = Arc::new(new);
            *locked(learned) = known.clone();
        }
        let [before, between, after] = known.frame.as_ref().map_or([&[][..]; 3], |frame| {
            [frame[0].as_slice(), frame[1].as_slice(), frame[2].as_slice()]
        });
        let user = self.tokens(user, false, false, deadline)?;
        Ok([before, &known.system.1, between, &user, after].concat())
    }

    /// Reads the model's chat template by laying two marks into it.
    fn frame(&self, deadline: Deadline) -> Result<[Vec<i64>; 3], Fault> {
        const SYSTEM: &str = "\u{2402}instructions\u{2403}";
        const USER: &str = "\u{2402}request\u{2403}";
        let body = json!({ "messages": [
            { "role": "system", "content": SYSTEM }, { "role": "user", "content": USER },
        ] });
        let answer = self.client.post("/apply-template", &body, Wait::First, deadline)?;
        let split = answer["prompt"].as_str().and_then(|text| {
            let (before, rest) = text.split_once(SYSTEM)?;
            let (between, after) = rest.split_once(USER)?;
            Some([before, between, after])
        });
        let Some([before, between, after]) = split else {
            let problem = "its chat template takes no system message".to_owned();
            return Err(Fault::Fatal(LlmError::Model { model: self.model.clone(), problem }));
        };
        Ok([
            self.tokens(before, true, true, deadline)?,
            self.tokens(between, false, true, deadline)?,
            self.tokens(after, false, true, deadline)?,
        ])
    }

    /// The tokens with which the choices begin.
    fn choices(
        &self,
        learned: &Mutex<Arc<Learned>>,
        choices: Choices,
        deadline: Deadline,
    ) -> Result<Vec<Vec<i64>>, Fault> {
        let known = locked(learned).clone();
        if let Some(known) = known.choices.get(choices) {
            return Ok(known.clone());
        }
        let first = |spelling| {
            Ok::<_, Fault>(self.tokens(spelling, false, false, deadline)?.first().copied())
        };
        let Some(tokens) = choice_tokens(choices, first)? else {
            let problem = "this model's tokens do not tell the answers apart".to_owned();
            return Err(Fault::Fatal(LlmError::Model { model: self.model.clone(), problem }));
        };
        let mut known = locked(learned);
        let mut new = (**known).clone();
        new.choices.insert(choices, tokens.clone());
        *known = Arc::new(new);
        Ok(tokens)
    }
}

/// The likeliest tokens with their probabilities, if they are probabilities.
fn likely<T>(list: &Value, name: impl Fn(&Value) -> Option<T>) -> Result<Vec<(T, f64)>, Fault> {
    let garbled = || Fault::Garbled("the answer has no sound probabilities".into());
    let list = list.as_array().filter(|list| !list.is_empty()).ok_or_else(garbled)?;
    let read = |token: &Value| {
        let logprob = token["logprob"].as_f64()?;
        (logprob <= 1e-6).then_some((name(token)?, logprob.exp()))
    };
    let read: Vec<(T, f64)> = list.iter().map(read).collect::<Option<_>>().ok_or_else(garbled)?;
    let sum: f64 = read.iter().map(|(_, probability)| probability).sum();
    if sum > 0.0 && sum < 1.001 { Ok(read) } else { Err(garbled()) }
}

/// The judgement, and whether every choice has been seen among the tokens.
fn weigh<T, C>(
    listed: &[(T, f64)],
    choices: &[Vec<C>],
    same: impl Fn(&T, &C) -> bool,
) -> (Judgement, bool) {
    let of = |choice: &Vec<C>| -> Vec<f64> {
        let is = |(token, _): &&(T, f64)| choice.iter().any(|one| same(token, one));
        listed.iter().filter(is).map(|(_, probability)| *probability).collect()
    };
    let found: Vec<Option<Vec<f64>>> =
        choices.iter().map(|choice| (!choice.is_empty()).then(|| of(choice))).collect();
    let all_seen = found.iter().flatten().all(|found| !found.is_empty());
    let weights: Vec<Option<f64>> =
        found.iter().map(|found| found.as_ref().map(|found| found.iter().sum())).collect();
    (judgement(&weights, 1.0), all_seen)
}

/// Whether a server's name for its model, a path or an alias, is the one expected.
fn is_model(name: &str, expected: &str) -> bool {
    let stem = |name: &str| file_name(name).trim_end_matches(".gguf").to_ascii_lowercase();
    name == expected || stem(name) == stem(expected)
}

fn file_name(path: &str) -> &str {
    Path::new(path).file_name().and_then(|name| name.to_str()).unwrap_or(path)
}

/// Breaks up what chat templates use as markup, for servers that tokenize it as such.
fn without_markup(text: &str) -> String {
    let mut text = text.to_owned();
    for mark in ["<|", "|>", "[INST]", "[/INST]", "<s>", "</s>", "<start_of_turn>", "<end_of_turn>"]
    {
        if text.contains(mark) {
            let (first, rest) = mark.split_at(1);
            text = text.replace(mark, &format!("{first} {rest}"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_model_is_known_by_its_file_name_or_alias() {
        assert!(is_model("/models/Qwen2.5.Q4_K_M.gguf", "qwen2.5.q4_k_m.gguf"));
        assert!(is_model("qwen", "qwen"));
        assert!(!is_model("/models/other.gguf", "qwen2.5.gguf"));
    }

    #[test]
    fn numbers_that_are_no_probabilities_are_refused() {
        let read =
            |text: &str| likely(&serde_json::from_str(text).unwrap(), |token| token["id"].as_i64());
        assert_eq!(read(r#"[{"id":1,"logprob":-1.0}]"#).unwrap().len(), 1);
        for wrong in [
            "[]",
            "null",
            r#"[{"id":1,"logprob":2.0}]"#,
            r#"[{"id":1,"logprob":null}]"#,
            r#"[{"logprob":-1.0}]"#,
            r#"[{"id":1,"logprob":-0.1},{"id":2,"logprob":-0.1}]"#,
        ] {
            read(wrong).unwrap_err();
        }
    }

    proptest! {
        #[test]
        fn no_markup_is_left(parts in prop::collection::vec(
            prop::sample::select(vec!["<|", "|>", "<", "|", ">", "[INST]", "<s>", "im_end", "é", " "]), 0..30,
        )) {
            let text = without_markup(&parts.concat());
            prop_assert!(!text.contains("<|") && !text.contains("|>") && !text.contains("[INST]"));
            prop_assert!(!text.contains("<s>"));
        }
    }
}
