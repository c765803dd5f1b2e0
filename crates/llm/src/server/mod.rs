//! Language models behind HTTP: llama.cpp's server, one or several, with their slots; and, with
//! fewer features, other servers of the OpenAI kind.
//!
//! Of a llama.cpp server everything is used: prompts are sent as tokens, so that nothing in a passage
//! can pose as markup; the probabilities of the answers are read at one token; what is written is
//! under a grammar; each request names the slot that holds the beginning of its prompt, and says how
//! many tokens had to be computed.
//!
//! A server of the OpenAI kind (vLLM, SGLang) is asked through `/v1/chat/completions`. What falls
//! away: the text of passages is tokenized by the server's own chat template, where special tokens
//! are broken up with a space rather than tokenized as text; only the twenty likeliest tokens are
//! seen; slots cannot be named; members of objects come in alphabetical order; reused tokens are
//! counted only if the server says so.
//!
//! Nothing that a server says is trusted: an answer that is not of the form asked for is asked for
//! once more, then the call has failed by name. Servers that fail are left alone for a while, see
//! [`pool`].

mod address;
mod http;
mod pool;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

pub use address::Kind;
pub use http::{Limits, Secret};

use crate::tree::shared_length;
use crate::{Cost, Deadline, Decision, Engine, Facts, Generated, Generation, Judgement, LlmError};
use address::{Address, Learned};
use http::Fault;
use pool::{Lease, Pool};

/// A request that was sent to a server and never answered is sent this often.
const SENT_AT_MOST: u32 = 3;
/// Decisions that keep a slot before another question may have it.
const GROUP: usize = 16;

/// The servers that serve one model.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    /// Name and hash of the model.
    pub identity: String,
    /// The servers, all with this model.
    pub servers: Vec<AddressConfig>,
    /// When no server has answered for so long, calls fail.
    pub patience: Duration,
}

/// One server.
#[derive(Debug, Clone)]
pub struct AddressConfig {
    /// As `http://127.0.0.1:8080`.
    pub url: String,
    /// What it speaks.
    pub kind: Kind,
    /// The model that it must serve: its file name or its alias.
    pub model: String,
    /// Requests at a time, for a server that does not say.
    pub slots: Option<usize>,
    /// API key.
    pub key: Option<Secret>,
    /// Time limits.
    pub limits: Limits,
}

/// Servers over HTTP.
#[derive(Debug)]
pub struct Server {
    identity: String,
    addresses: Vec<Address>,
    pool: Pool,
    learned: Mutex<Arc<Learned>>,
}

impl Server {
    /// Asks every server who it is. Waits, no longer than the patience, for one that is loading its
    /// model; fails when none can be reached, or when one serves another model.
    pub fn open(config: ServerConfig) -> Result<Self, LlmError> {
        check(&config)?;
        let addresses: Vec<Address> = config.servers.into_iter().map(Address::new).collect();
        let start = Instant::now();
        let until = Deadline::after(config.patience);
        loop {
            let soon = Deadline::after(config.patience.max(Duration::from_secs(5)));
            let asked: Vec<_> = addresses.iter().map(|address| address.ask_facts(soon)).collect();
            let (mut loading, mut problem) = (false, String::new());
            for (address, asked) in addresses.iter().zip(&asked) {
                match asked {
                    Ok(_) => {}
                    Err(Fault::Fatal(error)) => return Err(error.clone()),
                    Err(fault) => {
                        loading |= matches!(fault, Fault::Loading(_));
                        problem = format!("{}: {fault}", address.url());
                    }
                }
            }
            if asked.iter().any(Result::is_ok) {
                let slots: Vec<usize> = asked
                    .iter()
                    .map(|asked| asked.as_ref().map_or(1, |facts| facts.slots))
                    .collect();
                let pool = Pool::new(&slots, config.patience);
                for (at, asked) in asked.iter().enumerate() {
                    if let Err(fault) = asked {
                        tracing::warn!("{}: {fault}", addresses[at].url());
                        pool.unreachable(at, &fault.to_string());
                    }
                }
                let learned = Mutex::default();
                return Ok(Server { identity: config.identity, addresses, pool, learned });
            }
            if !loading || until.check().is_err() {
                return Err(LlmError::Unavailable { waited: start.elapsed(), problem });
            }
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    /// Asks until a server has answered as it should, or it is clear that none will.
    ///
    /// `ask` is told the server, the slot, and whether an answer was malformed before.
    fn attempt<'p, T>(
        &'p self,
        prompt: &str,
        held: &mut Option<Lease<'p>>,
        deadline: Deadline,
        mut ask: impl FnMut(&Address, usize, bool) -> Result<T, Fault>,
    ) -> Result<(T, bool), LlmError> {
        let (mut sent, mut again) = (0, false);
        loop {
            deadline.check()?;
            let mut lease = match held.take() {
                Some(lease) => lease,
                None => self.pool.acquire(prompt, deadline)?,
            };
            let address = &self.addresses[lease.server];
            let url = address.url();
            if lease.probe {
                match address.ask_facts(deadline) {
                    Ok(facts) => lease.recovered(facts.slots),
                    Err(fault) => {
                        lease.failed(&format!("{url}: {fault}"));
                        continue;
                    }
                }
            }
            let fault = match ask(address, lease.slot, again) {
                Ok(answer) => {
                    lease.served();
                    lease.holds(prompt);
                    *held = Some(lease);
                    return Ok((answer, again));
                }
                Err(fault) => fault,
            };
            // What the deadline has cut off is no fault of the server.
            deadline.check()?;
            let problem = format!("{url}: {fault}");
            match fault {
                Fault::Away(_) | Fault::Loading(_) => lease.failed(&problem),
                Fault::Lost(problem) => {
                    lease.failed(&format!("{url}: {problem}"));
                    sent += 1;
                    if sent == SENT_AT_MOST {
                        let address = url.to_owned();
                        return Err(LlmError::Lost { address, times: sent, problem });
                    }
                }
                Fault::Fatal(error) => return Err(error),
                Fault::Garbled(problem) if again => {
                    return Err(LlmError::Malformed { engine: url.to_owned(), problem });
                }
                Fault::Truncated(tokens) if again => {
                    return Err(LlmError::Truncated { engine: url.to_owned(), tokens });
                }
                Fault::Garbled(_) | Fault::Truncated(_) => {
                    tracing::debug!("{problem}; asking once more");
                    again = true;
                    lease.served();
                    *held = Some(lease);
                }
            }
        }
    }

    fn judge<'p>(
        &'p self,
        decision: &Decision,
        held: &mut Option<Lease<'p>>,
        deadline: Deadline,
        cost: &mut Cost,
    ) -> Result<Judgement, LlmError> {
        let prompt = prompt_text(&decision.system, &decision.user);
        let ask = |address: &Address, slot, _| {
            address.judge(&self.learned, decision, slot, deadline, cost)
        };
        Ok(self.attempt(&prompt, held, deadline, ask)?.0)
    }
}

impl Engine for Server {
    fn identity(&self) -> &str {
        &self.identity
    }

    fn decide(
        &self,
        decisions: Vec<Decision>,
        deadline: Deadline,
    ) -> Result<(Vec<Judgement>, Cost), LlmError> {
        let start = Instant::now();
        let groups = grouped(&decisions);
        let next = AtomicUsize::new(0);
        let judgements = Mutex::new(vec![None; decisions.len()]);
        let spent = Mutex::new(Cost::default());
        let failure = Mutex::new(None);
        let work = || {
            while let Some(group) = groups.get(next.fetch_add(1, Ordering::Relaxed)) {
                // The slot is kept for a group, and given back before the next: other calls wait.
                let mut held = None;
                for &at in group {
                    if locked(&failure).is_some() {
                        return;
                    }
                    let mut cost = Cost { decisions: 1, ..Cost::default() };
                    let judged = self.judge(&decisions[at], &mut held, deadline, &mut cost);
                    *locked(&spent) += cost;
                    match judged {
                        Ok(judgement) => locked(&judgements)[at] = Some(judgement),
                        Err(error) => {
                            locked(&failure).get_or_insert(error);
                            return;
                        }
                    }
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..groups.len().min(self.pool.slots()) {
                scope.spawn(work);
            }
            work();
        });
        if let Some(error) = locked(&failure).take() {
            return Err(error);
        }
        let milliseconds = u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX);
        let cost = Cost { milliseconds, ..*locked(&spent) };
        let judgements: Option<Vec<Judgement>> = locked(&judgements).drain(..).collect();
        Ok((judgements.ok_or(LlmError::Stopped)?, cost))
    }

    fn generate(&self, generation: Generation, deadline: Deadline) -> Result<Generated, LlmError> {
        let start = Instant::now();
        let prompt = prompt_text(&generation.system, &generation.user);
        let mut cost = Cost::default();
        let mut decoded_tokens = 0;
        let ask = |address: &Address, slot, again| {
            let (value, tokens) =
                address.write(&self.learned, &generation, slot, again, deadline, &mut cost)?;
            decoded_tokens = tokens;
            Ok(value)
        };
        let (value, retried) = self.attempt(&prompt, &mut None, deadline, ask)?;
        cost.milliseconds = u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX);
        Ok(Generated { value, cost, decoded_tokens, fed_tokens: 0, retried })
    }

    fn facts(&self) -> Vec<Facts> {
        self.addresses.iter().filter_map(Address::facts).collect()
    }

    fn slots(&self) -> usize {
        self.pool.slots()
    }
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What prompts are compared by: the tokens they share follow from the text they share.
fn prompt_text(system: &str, user: &str) -> String {
    format!("{system}\0{user}")
}

/// Puts decisions together whose prompts share at least half of their text, so that one slot takes
/// them one after the other; the longest groups first.
fn grouped(decisions: &[Decision]) -> Vec<Vec<usize>> {
    let text: Vec<String> = decisions.iter().map(|d| prompt_text(&d.system, &d.user)).collect();
    let mut order: Vec<usize> = (0..decisions.len()).collect();
    order.sort_by(|&a, &b| text[a].cmp(&text[b]).then(a.cmp(&b)));
    let together = |&a: &usize, &b: &usize| {
        shared_length(text[a].as_bytes(), text[b].as_bytes()) * 2
            >= text[a].len().min(text[b].len())
    };
    let mut groups: Vec<Vec<usize>> = order
        .chunk_by(together)
        .flat_map(|group| group.chunks(GROUP).map(<[usize]>::to_vec))
        .collect();
    let length = |group: &Vec<usize>| group.iter().map(|&at| text[at].len()).sum::<usize>();
    groups.sort_by_key(|group| std::cmp::Reverse(length(group)));
    groups
}

fn check(config: &ServerConfig) -> Result<(), LlmError> {
    let fault =
        |problem: String| LlmError::Setting { field: "language_model.server".into(), problem };
    if config.servers.is_empty() {
        return Err(fault("name at least one server".into()));
    }
    for (at, server) in config.servers.iter().enumerate() {
        if !server.url.starts_with("http://") && !server.url.starts_with("https://") {
            let url = &server.url;
            return Err(fault(format!("url {url:?}: give one such as http://127.0.0.1:8080")));
        }
        if config.servers[..at].iter().any(|other| other.url == server.url) {
            return Err(fault(format!("{} is named twice; name each server once", server.url)));
        }
        if server.slots == Some(0) {
            return Err(fault(format!("{}: slots = 0; give at least one", server.url)));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::YES_NO;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_decision_is_in_one_group(users in prop::collection::vec("[ab]{0,8}", 0..60)) {
            let decisions: Vec<Decision> = users
                .into_iter()
                .map(|user| Decision { system: String::new(), user, choices: YES_NO })
                .collect();
            let groups = grouped(&decisions);
            prop_assert!(groups.iter().all(|group| (1..=GROUP).contains(&group.len())));
            let mut all: Vec<usize> = groups.concat();
            all.sort_unstable();
            prop_assert_eq!(all, (0..decisions.len()).collect::<Vec<_>>());
        }
    }

    #[test]
    fn settings_that_cannot_work_are_named() {
        let with = |url: &str, slots| {
            let server = AddressConfig {
                url: url.into(),
                kind: Kind::LlamaCpp,
                model: "m".into(),
                slots,
                key: None,
                limits: Limits::default(),
            };
            let patience = Duration::ZERO;
            let servers = vec![server.clone(), server];
            check(&ServerConfig { identity: "m".into(), servers, patience })
                .unwrap_err()
                .to_string()
        };
        assert!(with("127.0.0.1:8080", None).contains("http://"));
        assert!(with("http://a", Some(0)).contains("slots"));
        assert!(with("http://a", None).contains("twice"));
    }
}
