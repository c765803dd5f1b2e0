//! llama.cpp in this process.
//!
//! One thread owns the model and one context; calls are handed to it and wait their turn. The
//! context's memory is unified, so that sequences share cells: the prompts of a call are arranged as
//! a tree ([`crate::tree`]), each shared stretch is computed once and kept, and the prompts that
//! branch from it are computed together in full batches. What later calls may need again (a passage
//! with its question, before its sentences are asked about) stays in memory until the room is wanted.

mod states;
mod write;

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, OnceLock};
use std::thread::JoinHandle;
use std::time::Instant;

use llama_cpp_2::context::LlamaContext;
use llama_cpp_2::context::params::{KvCacheType, LlamaContextParams};
use llama_cpp_2::context::session::{LlamaStateSeqFlags, SeqState};
use llama_cpp_2::llama_backend::LlamaBackend;
use llama_cpp_2::llama_batch::LlamaBatch;
use llama_cpp_2::model::params::LlamaModelParams;
use llama_cpp_2::model::{LlamaChatMessage, LlamaModel};
use llama_cpp_2::token::LlamaToken;
use llama_cpp_2::{LogOptions, send_logs_to_tracing};

use crate::cache::Cache;
use crate::shelf::Shelf;
use crate::tree::{Node, arrange};
use crate::{
    Choices, Cost, Deadline, Decision, Engine, Facts, Generated, Generation, Judgement, LlmError,
    choice_tokens, judgement,
};

/// Sequences that may be in memory at once.
const SEQUENCES: usize = 64;
/// A prompt whose own part is shorter than this is not kept: it is as quickly computed again.
const WORTH_KEEPING: usize = 48;

/// How to open a model in this process.
#[derive(Debug, Clone)]
pub struct LocalConfig {
    /// GGUF file.
    pub path: PathBuf,
    /// Name and hash of the model.
    pub identity: String,
    /// Threads; all cores when not given.
    pub threads: Option<usize>,
    /// Tokens the context's memory holds.
    pub context: usize,
    /// Tokens computed in one call of llama.cpp; the deadline is checked between calls.
    pub batch: usize,
    /// How the context's memory is kept.
    pub memory: Memory,
    /// Bytes outside the context for the passages that are asked about most, between questions.
    pub shelf: usize,
    /// Folder in which these are kept from one process to the next.
    pub states: Option<PathBuf>,
    /// Layers that a graphics card computes; without the feature `cuda` none, whatever is said.
    pub gpu_layers: u32,
}

impl LocalConfig {
    /// A model file with the usual settings.
    pub fn new(path: PathBuf, identity: &str) -> Self {
        LocalConfig {
            path,
            identity: identity.to_owned(),
            threads: None,
            context: 8192,
            batch: 512,
            memory: Memory::default(),
            shelf: 256 << 20,
            states: None,
            gpu_layers: 0,
        }
    }
}

/// How the context's memory is kept. Part of what a judgement depends on, so not to be changed in
/// the middle of a night.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Memory {
    /// Sixteen bits a value.
    #[default]
    F16,
    /// Some nine bits a value: half the memory, a little noise.
    Q8,
}

/// llama.cpp in this process.
#[derive(Debug)]
pub struct Local {
    identity: String,
    facts: Facts,
    calls: Option<Sender<Call>>,
    worker: Option<JoinHandle<()>>,
}

/// A call waiting for the worker.
enum Call {
    Decide(Vec<Decision>, Deadline, Sender<Reply>),
    Write(Generation, Deadline, Sender<Result<Generated, LlmError>>),
    Forget,
}

type Reply = Result<(Vec<Judgement>, Cost), LlmError>;

impl Local {
    /// Loads the model; returns once it is ready.
    pub fn open(config: LocalConfig) -> Result<Self, LlmError> {
        if !config.path.is_file() {
            return Err(LlmError::Missing(config.path.display().to_string()));
        }
        let identity = config.identity.clone();
        // llama.cpp aborts the process on these.
        if config.batch < SEQUENCES || config.batch > config.context {
            let problem = format!(
                "a batch of {} tokens; choose {SEQUENCES} to {} (the context)",
                config.batch, config.context
            );
            return Err(LlmError::Model { model: identity, problem });
        }
        let (calls, waiting) = channel();
        let (ready, opened) = channel();
        let worker = std::thread::Builder::new()
            .name("llm".into())
            .spawn(move || work(&config, &waiting, &ready))
            .map_err(|e| LlmError::Model { model: identity.clone(), problem: e.to_string() })?;
        let context = opened.recv().map_err(|_| LlmError::Stopped)??;
        let place = "in-process".to_owned();
        let facts = Facts { place, model: identity.clone(), context, slots: 1 };
        Ok(Local { identity, facts, calls: Some(calls), worker: Some(worker) })
    }

    /// Hands a call to the worker and waits for its answer.
    fn call<T>(
        &self,
        call: impl FnOnce(Sender<Result<T, LlmError>>) -> Call,
    ) -> Result<T, LlmError> {
        let (reply, answer) = channel();
        let sent = self.calls.as_ref().ok_or(LlmError::Stopped)?.send(call(reply));
        sent.map_err(|_| LlmError::Stopped)?;
        answer.recv().map_err(|_| LlmError::Stopped)?
    }
}

impl Engine for Local {
    fn identity(&self) -> &str {
        &self.identity
    }

    fn decide(&self, decisions: Vec<Decision>, deadline: Deadline) -> Reply {
        self.call(|reply| Call::Decide(decisions, deadline, reply))
    }

    fn generate(&self, generation: Generation, deadline: Deadline) -> Result<Generated, LlmError> {
        self.call(|reply| Call::Write(generation, deadline, reply))
    }

    fn facts(&self) -> Vec<Facts> {
        vec![self.facts.clone()]
    }

    fn forget(&self) {
        if let Some(calls) = &self.calls {
            // A worker that has ended says so at the next question.
            let _ = calls.send(Call::Forget);
        }
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        // Closing the channel ends the worker, which frees the model.
        self.calls = None;
        if let Some(worker) = self.worker.take() {
            let _ = worker.join();
        }
    }
}

/// The vector instructions that llama.cpp was built with, in its own words.
pub fn system_info() -> String {
    #[allow(unsafe_code)]
    // SAFETY: the function takes nothing and returns a pointer to a static, NUL-terminated string.
    let text = unsafe { std::ffi::CStr::from_ptr(llama_cpp_sys_2::llama_print_system_info()) };
    text.to_string_lossy().trim().to_owned()
}

/// llama.cpp's global state; it may be initialised once in a process.
fn backend() -> Result<&'static LlamaBackend, String> {
    static BACKEND: OnceLock<LlamaBackend> = OnceLock::new();
    static FIRST: Mutex<()> = Mutex::new(());
    let _first = FIRST.lock().map_err(|e| e.to_string())?;
    if let Some(backend) = BACKEND.get() {
        return Ok(backend);
    }
    send_logs_to_tracing(LogOptions::default().with_logs_enabled(false));
    let backend = LlamaBackend::init().map_err(|e| e.to_string())?;
    Ok(BACKEND.get_or_init(|| backend))
}

/// The worker's life: open, then answer calls until nobody can make any.
fn work(config: &LocalConfig, waiting: &Receiver<Call>, ready: &Sender<Result<usize, LlmError>>) {
    let failed = |problem: String| LlmError::Model { model: config.identity.clone(), problem };
    let opened = backend().and_then(|backend| {
        let parameters = LlamaModelParams::default().with_n_gpu_layers(config.gpu_layers);
        let model = LlamaModel::load_from_file(backend, &config.path, &parameters)
            .map_err(|e| format!("cannot load {}: {e}", config.path.display()))?;
        Ok((backend, model))
    });
    let (backend, model) = match opened {
        Ok(opened) => opened,
        Err(problem) => {
            let _ = ready.send(Err(failed(problem)));
            return;
        }
    };
    match Session::open(backend, &model, config) {
        Ok(mut session) => {
            let states = states::folder(config);
            if let Some(folder) = &states {
                session.load_states(folder);
            }
            let _ = ready.send(Ok(session.cells));
            for call in waiting {
                match call {
                    Call::Decide(decisions, deadline, reply) => {
                        let _ = reply.send(session.decide(&decisions, deadline));
                    }
                    Call::Write(generation, deadline, reply) => {
                        let _ = reply.send(session.write(&generation, deadline));
                    }
                    Call::Forget => {
                        session.forget_all();
                        session.shelf = Shelf::new(config.shelf);
                    }
                }
            }
            if let Some(Err(error)) = states.map(|folder| session.save_states(&folder)) {
                tracing::warn!("{error}");
            }
        }
        Err(problem) => {
            let _ = ready.send(Err(failed(problem)));
        }
    }
}

/// What the worker holds: the context and the account of what is in its memory.
struct Session<'m> {
    model: &'m LlamaModel,
    identity: String,
    context: LlamaContext<'m>,
    cache: Cache<LlamaToken>,
    shelf: Shelf<LlamaToken, SeqState>,
    cells: usize,
    batch: LlamaBatch<'static>,
    batch_size: usize,
    frame: Frame,
    choices: HashMap<Choices, Vec<Vec<LlamaToken>>>,
    /// What each token stands for; filled when something is written for the first time.
    pieces: Vec<Box<[u8]>>,
}

/// The markup of a chat around the instructions and the request, from the model's own template.
struct Frame {
    before: Vec<LlamaToken>,
    between: Vec<LlamaToken>,
    after: Vec<LlamaToken>,
}

/// One prompt on its way through the model.
struct Branch {
    sequence: usize,
    prompt: usize,
    from: usize,
}

impl<'m> Session<'m> {
    fn open(
        backend: &'static LlamaBackend,
        model: &'m LlamaModel,
        config: &LocalConfig,
    ) -> Result<Self, String> {
        let threads = config
            .threads
            .or_else(|| std::thread::available_parallelism().ok().map(Into::into))
            .unwrap_or(1);
        let threads = i32::try_from(threads).map_err(|e| e.to_string())?;
        let size = |value: usize| u32::try_from(value).map_err(|e| e.to_string());
        let memory = match config.memory {
            Memory::F16 => KvCacheType::F16,
            Memory::Q8 => KvCacheType::Q8_0,
        };
        let parameters = LlamaContextParams::default()
            .with_type_k(memory)
            .with_type_v(memory)
            .with_n_ctx(NonZeroU32::new(size(config.context)?))
            .with_n_batch(size(config.batch)?)
            .with_n_ubatch(size(config.batch)?)
            .with_n_seq_max(size(SEQUENCES)?)
            .with_n_threads(threads)
            .with_n_threads_batch(threads)
            // Without it, a copy of part of a sequence aborts the process.
            .with_kv_unified(true);
        let context = model.new_context(backend, parameters).map_err(|e| e.to_string())?;
        Ok(Session {
            model,
            identity: config.identity.clone(),
            cache: Cache::new(context.n_ctx() as usize, SEQUENCES),
            shelf: Shelf::new(config.shelf),
            cells: context.n_ctx() as usize,
            context,
            batch: LlamaBatch::new(config.batch, 1),
            batch_size: config.batch,
            frame: Frame::of(model)?,
            choices: HashMap::new(),
            pieces: Vec::new(),
        })
    }

    fn decide(&mut self, decisions: &[Decision], deadline: Deadline) -> Reply {
        let start = Instant::now();
        let prompts: Vec<Vec<LlamaToken>> = decisions
            .iter()
            .map(|decision| self.frame.prompt(self.model, &decision.system, &decision.user))
            .collect();
        for decision in decisions {
            self.learn(decision.choices)?;
        }
        if let Some(tokens) = prompts.iter().map(Vec::len).max()
            && tokens > self.cells
        {
            return Err(LlmError::PromptTooLong { tokens, limit: self.cells });
        }
        self.make_a_clean_start(&prompts);
        let mut cost = Cost {
            decisions: decisions.len() as u64,
            prompt_tokens: prompts.iter().map(|prompt| prompt.len() as u64).sum(),
            ..Cost::default()
        };
        let mut judgements = vec![None; decisions.len()];
        let mut visit =
            Visit { prompts: &prompts, decisions, deadline, judgements: &mut judgements };
        let done = self.walk(&arrange(&prompts), &mut visit, &mut cost, &mut Vec::new());
        if let Err(error) = done {
            // What is half computed must not be mistaken for something kept.
            self.forget_all();
            return Err(error);
        }
        cost.milliseconds = u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX);
        let judgements: Option<Vec<Judgement>> = judgements.into_iter().collect();
        Ok((judgements.ok_or_else(|| self.failed("a decision was left out"))?, cost))
    }

    /// Empties the memory when little of it serves these prompts: attention runs over every cell in
    /// use, so that what an earlier question has left would slow down all that follows.
    fn make_a_clean_start(&mut self, prompts: &[impl AsRef<[LlamaToken]>]) {
        let shared = |tokens: &[LlamaToken]| self.cache.best(tokens).map_or(0, |(_, n)| n);
        let serves: usize = prompts.iter().map(|prompt| shared(prompt.as_ref())).sum();
        if serves * 4 < self.cache.used() {
            self.shelve();
            self.forget_all();
        }
    }

    /// Copies what is in memory to the shelf, as far as it is not there and long enough to be worth
    /// it. The longest sequences come first: they hold the shorter ones.
    fn shelve(&mut self) {
        for (sequence, tokens) in self.cache.computed() {
            if tokens.len() < WORTH_KEEPING || !self.shelf.lacks(tokens) {
                continue;
            }
            match self.context.state_seq_get(sequence as i32, LlamaStateSeqFlags::empty()) {
                Ok(state) => {
                    let bytes = state.byte_len();
                    self.shelf.put(tokens.to_vec(), state, bytes);
                }
                Err(error) => tracing::debug!("a state cannot be kept: {error}"),
            }
        }
    }

    /// Empties the memory.
    fn forget_all(&mut self) {
        self.context.clear_kv_cache();
        self.cache.clear();
    }

    /// Computes a node's stretch, then the prompts that branch from it, then the nodes below.
    fn walk(
        &mut self,
        node: &Node,
        visit: &mut Visit<'_>,
        cost: &mut Cost,
        pinned: &mut Vec<usize>,
    ) -> Result<(), LlmError> {
        let depth = pinned.len();
        if node.length > 0 {
            let stretch = &visit.prompts[node.prompt][..node.length];
            match self.cache.best(stretch) {
                Some((sequence, shared)) if shared == stretch.len() => {
                    self.cache.touch(sequence);
                    pinned.push(sequence);
                }
                _ => {
                    let branch = self.fork(node.prompt, stretch, 0, pinned)?;
                    pinned.push(branch.sequence);
                    self.run(&[branch], Some(node.length), visit, cost)?;
                }
            }
        }
        let mut waiting = Vec::new();
        for &leaf in &node.leaves {
            let prompt = &visit.prompts[leaf];
            // When the memory is full of branches that wait, they go first.
            match self.fork(leaf, prompt, 0, pinned) {
                Ok(branch) => {
                    pinned.push(branch.sequence);
                    waiting.push(branch);
                }
                Err(_) if !waiting.is_empty() => {
                    self.finish(&mut waiting, visit, cost, pinned)?;
                    let branch = self.fork(leaf, prompt, 0, pinned)?;
                    pinned.push(branch.sequence);
                    waiting.push(branch);
                }
                Err(error) => return Err(error),
            }
        }
        self.finish(&mut waiting, visit, cost, pinned)?;
        for child in &node.children {
            self.walk(child, visit, cost, pinned)?;
        }
        pinned.truncate(depth);
        Ok(())
    }

    /// Runs the branches that wait, and keeps those that a later call may go on from.
    fn finish(
        &mut self,
        waiting: &mut Vec<Branch>,
        visit: &mut Visit<'_>,
        cost: &mut Cost,
        pinned: &mut Vec<usize>,
    ) -> Result<(), LlmError> {
        self.run(waiting, None, visit, cost)?;
        for branch in waiting.drain(..) {
            pinned.retain(|&sequence| sequence != branch.sequence);
            if visit.prompts[branch.prompt].len() - branch.from < WORTH_KEEPING {
                self.forget(branch.sequence)?;
            }
        }
        Ok(())
    }

    /// A new sequence that begins with what is already in memory of `tokens`, with room for `more`.
    fn fork(
        &mut self,
        prompt: usize,
        tokens: &[LlamaToken],
        more: usize,
        pinned: &[usize],
    ) -> Result<Branch, LlmError> {
        // The last token is always computed: its logits are wanted.
        let best = self.cache.best(&tokens[..tokens.len() - 1]);
        let (base, shared) = match best {
            Some((base, shared)) => (Some(base), shared),
            None => (None, 0),
        };
        if let Some(branch) = self.take_from_shelf(prompt, tokens, more, pinned, shared)? {
            return Ok(branch);
        }
        let mut keep = pinned.to_vec();
        keep.extend(base);
        let too_long = LlmError::PromptTooLong {
            tokens: tokens.len(),
            limit: self.cells - self.cache.used().min(self.cells),
        };
        let (forgotten, sequence) =
            self.cache.make_room(tokens.len() - shared + more, &keep).ok_or(too_long)?;
        for sequence in forgotten {
            self.clear(sequence)?;
        }
        if let Some(base) = base {
            self.cache.touch(base);
            let end = u32::try_from(shared).ok();
            let copied = self.context.kv_cache_seq_cp(base as i32, sequence as i32, Some(0), end);
            copied.map_err(|e| self.failed(&e.to_string()))?;
        }
        self.cache.keep(sequence, base, shared, tokens.to_vec());
        Ok(Branch { sequence, prompt, from: shared })
    }

    /// A new sequence that begins with what is on the shelf, if that is much more than the `shared`
    /// tokens in memory, and if there is room.
    fn take_from_shelf(
        &mut self,
        prompt: usize,
        tokens: &[LlamaToken],
        more: usize,
        pinned: &[usize],
        shared: usize,
    ) -> Result<Option<Branch>, LlmError> {
        let least = shared + WORTH_KEEPING;
        let best = self.shelf.best(&tokens[..tokens.len() - 1], least);
        let Some((state, shared, length)) = best else { return Ok(None) };
        // For a moment all of the state is in memory.
        let room = self.cache.make_room(length.max(tokens.len() + more), pinned);
        let Some((forgotten, sequence)) = room else { return Ok(None) };
        for sequence in forgotten {
            let cleared = self.context.kv_cache_seq_rm(sequence as i32, None, None);
            cleared.map_err(|e| failed(&self.identity, &e.to_string()))?;
        }
        if let Err(error) = self.context.state_seq_set(state, sequence as i32) {
            tracing::debug!("a state cannot be taken up again: {error}");
            self.clear(sequence)?;
            return Ok(None);
        }
        let end = u32::try_from(shared).ok();
        let cut = self.context.kv_cache_seq_rm(sequence as i32, end, None);
        cut.map_err(|e| self.failed(&e.to_string()))?;
        self.cache.keep(sequence, None, 0, tokens.to_vec());
        Ok(Some(Branch { sequence, prompt, from: shared }))
    }

    /// Computes the branches' own tokens in full batches. With `until`, only up to that length and
    /// without reading a decision; else to the end, reading the decision at the last token.
    fn run(
        &mut self,
        branches: &[Branch],
        until: Option<usize>,
        visit: &mut Visit<'_>,
        cost: &mut Cost,
    ) -> Result<(), LlmError> {
        let mut read: Vec<(i32, usize)> = Vec::new();
        self.batch.clear();
        for branch in branches {
            let tokens = &visit.prompts[branch.prompt];
            let end = until.unwrap_or(tokens.len());
            for (at, &token) in tokens.iter().enumerate().take(end).skip(branch.from) {
                if self.batch.n_tokens() as usize == self.batch_size {
                    self.decode(&mut read, visit, cost)?;
                }
                let last = until.is_none() && at + 1 == end;
                if last {
                    read.push((self.batch.n_tokens(), branch.prompt));
                }
                let added = self.batch.add(token, at as i32, &[branch.sequence as i32], last);
                added.map_err(|e| self.failed(&e.to_string()))?;
            }
        }
        self.decode(&mut read, visit, cost)?;
        for branch in branches {
            self.cache.ready(branch.sequence);
        }
        Ok(())
    }

    /// Runs one batch and reads the decisions that end in it.
    fn decode(
        &mut self,
        read: &mut Vec<(i32, usize)>,
        visit: &mut Visit<'_>,
        cost: &mut Cost,
    ) -> Result<(), LlmError> {
        if self.batch.n_tokens() == 0 {
            return Ok(());
        }
        visit.deadline.check()?;
        let decoded = self.context.decode(&mut self.batch);
        decoded.map_err(|e| self.failed(&format!("decoding failed: {e}")))?;
        cost.computed_tokens += self.batch.n_tokens() as u64;
        for (at, prompt) in read.drain(..) {
            let choices = visit.decisions[prompt].choices;
            let tokens = self.choices.get(choices).map(Vec::as_slice).unwrap_or_default();
            visit.judgements[prompt] = Some(judge(self.context.get_logits_ith(at), tokens));
        }
        self.batch.clear();
        Ok(())
    }

    fn forget(&mut self, sequence: usize) -> Result<(), LlmError> {
        self.cache.forget(sequence);
        self.clear(sequence)
    }

    fn clear(&mut self, sequence: usize) -> Result<(), LlmError> {
        let cleared = self.context.kv_cache_seq_rm(sequence as i32, None, None);
        cleared.map_err(|e| self.failed(&e.to_string()))
    }

    /// Finds the tokens with which the choices begin, once for each set of choices.
    fn learn(&mut self, choices: Choices) -> Result<(), LlmError> {
        if self.choices.contains_key(choices) {
            return Ok(());
        }
        let vocabulary = self.model.vocab();
        let first = |spelling: &'static str| {
            let tokens = vocabulary.tokenize(spelling.as_bytes(), false, false);
            Ok::<_, LlmError>(tokens.first().copied())
        };
        let tokens = choice_tokens(choices, first)?
            .ok_or_else(|| self.failed("this model's tokens do not tell the answers apart"))?;
        self.choices.insert(choices, tokens);
        Ok(())
    }

    fn failed(&self, problem: &str) -> LlmError {
        failed(&self.identity, problem)
    }
}

fn failed(model: &str, problem: &str) -> LlmError {
    LlmError::Model { model: model.to_owned(), problem: problem.to_owned() }
}

/// What one call is about.
struct Visit<'a> {
    prompts: &'a [Vec<LlamaToken>],
    decisions: &'a [Decision],
    deadline: Deadline,
    judgements: &'a mut [Option<Judgement>],
}

/// The probabilities of the choices, from the logits of all tokens.
fn judge(logits: &[f32], choices: &[Vec<LlamaToken>]) -> Judgement {
    let highest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let weight = |logit: f32| f64::from(logit - highest).exp();
    let all: f64 = logits.iter().map(|&logit| weight(logit)).sum();
    let weights: Vec<Option<f64>> = choices
        .iter()
        .map(|tokens| {
            let logit = |token: &LlamaToken| logits.get(token.0 as usize).copied();
            (!tokens.is_empty()).then(|| tokens.iter().filter_map(logit).map(weight).sum())
        })
        .collect();
    judgement(&weights, all)
}

impl Frame {
    /// Reads the model's own chat template by laying two marks into it.
    fn of(model: &LlamaModel) -> Result<Self, String> {
        const SYSTEM: &str = "\u{2402}instructions\u{2403}";
        const USER: &str = "\u{2402}request\u{2403}";
        let template = model.chat_template(None).map_err(|e| e.to_string())?;
        let message = |role: &str, content: &str| {
            LlamaChatMessage::new(role.into(), content.into()).map_err(|e| e.to_string())
        };
        let chat = [message("system", SYSTEM)?, message("user", USER)?];
        let text = model.apply_chat_template(&template, &chat, true).map_err(|e| e.to_string())?;
        let unusable = || "its chat template takes no system message".to_owned();
        let (before, rest) = text.split_once(SYSTEM).ok_or_else(unusable)?;
        let (between, after) = rest.split_once(USER).ok_or_else(unusable)?;
        let vocabulary = model.vocab();
        let tokens = |text: &str, first| vocabulary.tokenize(text.as_bytes(), first, true);
        Ok(Frame {
            before: tokens(before, true),
            between: tokens(between, false),
            after: tokens(after, false),
        })
    }

    /// The tokens of a prompt. What it says is tokenized as text, never as markup.
    fn prompt(&self, model: &LlamaModel, system: &str, user: &str) -> Vec<LlamaToken> {
        let vocabulary = model.vocab();
        let text = |text: &str| vocabulary.tokenize(text.as_bytes(), false, false);
        [self.before.as_slice(), &text(system), &self.between, &text(user), &self.after].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probabilities_are_read_at_the_tokens_of_the_choices() {
        let logits = [0.0, 2.0, 1.0, f32::NEG_INFINITY];
        let judgement = judge(&logits, &[vec![LlamaToken(1)], vec![LlamaToken(2), LlamaToken(3)]]);
        let yes = 1.0 / (1.0 + (-1.0_f64).exp());
        assert!((judgement.probabilities[0] - yes).abs() < 1e-9);
        assert!((judgement.probabilities.iter().sum::<f64>() - 1.0).abs() < 1e-9);
        assert!(judgement.mass < 1.0);
    }

    #[test]
    fn a_missing_model_is_named_with_the_remedy() {
        let config = LocalConfig {
            context: 512,
            batch: 64,
            ..LocalConfig::new("no/such.gguf".into(), "none")
        };
        let message = Local::open(config).unwrap_err().to_string();
        assert!(message.contains("no/such.gguf") && message.contains("models fetch"), "{message}");
    }

    #[test]
    fn llama_cpp_has_vector_instructions() {
        // Off by default: without them a night's work takes several nights.
        if cfg!(target_arch = "x86_64") {
            assert!(system_info().contains("AVX2 = 1"), "{}", system_info());
        }
    }
}
