//! Which slot of which server a request goes to, and which servers are left alone for a while.
//!
//! Requests queue for a slot in the order in which they came, so that no question waits behind all
//! requests of another. A server that fails is left alone for a time that doubles; after
//! [`BREAKS_AFTER`] failures in a row it gets one probe at a time until one succeeds.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::tree::shared_length;
use crate::{Deadline, LlmError};

/// Failures in a row after which a server gets probes only.
const BREAKS_AFTER: u32 = 3;
/// How long a server is left alone after its first failure, and at most.
const REST: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(15));

/// The slots of all servers.
#[derive(Debug)]
pub(crate) struct Pool {
    state: Mutex<State>,
    changed: Condvar,
    patience: Duration,
}

#[derive(Debug)]
struct State {
    servers: Vec<Server>,
    queue: VecDeque<u64>,
    tickets: u64,
    clock: u64,
    /// Since when every server fails, and what the last failure was.
    down: Option<(Instant, String)>,
}

#[derive(Debug)]
struct Server {
    slots: Vec<Slot>,
    failures: u32,
    rests_until: Option<Instant>,
    probed: bool,
}

#[derive(Debug, Clone, Default)]
struct Slot {
    busy: bool,
    prompt: String,
    used: u64,
}

/// A slot that is held until this is dropped.
#[derive(Debug)]
pub(crate) struct Lease<'a> {
    pool: &'a Pool,
    /// Number of the server.
    pub server: usize,
    /// Number of the slot there.
    pub slot: usize,
    /// Whether the server has failed so often that it must be asked first who it is.
    pub probe: bool,
}

impl Pool {
    /// A pool of servers with these numbers of slots.
    pub fn new(slots: &[usize], patience: Duration) -> Self {
        let server = |&count: &usize| Server {
            slots: vec![Slot::default(); count.max(1)],
            failures: 0,
            rests_until: None,
            probed: false,
        };
        let servers = slots.iter().map(server).collect();
        let state = State { servers, queue: VecDeque::new(), tickets: 0, clock: 0, down: None };
        Pool { state: Mutex::new(state), changed: Condvar::new(), patience }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Slots of all servers.
    pub fn slots(&self) -> usize {
        self.lock().servers.iter().map(|server| server.slots.len()).sum()
    }

    /// Notes that a server could not be reached at all: it gets a probe first.
    pub fn unreachable(&self, server: usize, problem: &str) {
        self.lock().failed(server, BREAKS_AFTER, problem);
    }

    /// Waits for a slot: one that has seen most of the prompt if there is one, else one of the least
    /// busy server.
    pub fn acquire(&self, prompt: &str, deadline: Deadline) -> Result<Lease<'_>, LlmError> {
        let mut state = self.lock();
        let ticket = state.tickets;
        state.tickets += 1;
        state.queue.push_back(ticket);
        let found = loop {
            if let Err(error) = deadline.check() {
                break Err(error);
            }
            let now = Instant::now();
            if let Some((since, problem)) = &state.down
                && since.elapsed() > self.patience
                && !state.servers.iter().any(|server| server.is_open(now))
            {
                let waited = since.elapsed();
                break Err(LlmError::Unavailable { waited, problem: problem.clone() });
            }
            if state.queue.front() == Some(&ticket)
                && let Some((server, slot)) = state.choose(prompt, now)
            {
                break Ok(self.take(&mut state, server, slot));
            }
            let next = state.servers.iter().filter_map(|server| server.rests_until).min();
            let wait = next.map_or(Duration::MAX, |at| at.saturating_duration_since(now));
            // Woken when a slot is free; at times in any case, to look at the clock.
            let wait = wait.clamp(Duration::from_millis(5), Duration::from_millis(250));
            let woken = self.changed.wait_timeout(state, wait.min(deadline.left()));
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
        };
        state.queue.retain(|&waiting| waiting != ticket);
        drop(state);
        self.changed.notify_all();
        found
    }

    fn take(&self, state: &mut State, server: usize, slot: usize) -> Lease<'_> {
        state.clock += 1;
        let clock = state.clock;
        let taken = &mut state.servers[server];
        let probe = taken.failures >= BREAKS_AFTER;
        taken.probed |= probe;
        taken.slots[slot].busy = true;
        taken.slots[slot].used = clock;
        Lease { pool: self, server, slot, probe }
    }
}

impl Server {
    /// Whether a request may be sent to it now.
    fn is_open(&self, now: Instant) -> bool {
        self.rests_until.is_none_or(|until| until <= now)
            && !(self.failures >= BREAKS_AFTER && self.probed)
    }
}

impl State {
    fn failed(&mut self, server: usize, failures: u32, problem: &str) {
        let failed = &mut self.servers[server];
        failed.failures = failed.failures.saturating_add(failures);
        failed.slots.iter_mut().for_each(|slot| slot.prompt.clear());
        let doubled = REST.0.saturating_mul(1 << (failed.failures - 1).min(10)).min(REST.1);
        failed.rests_until = Some(Instant::now() + doubled);
        if self.servers.iter().all(|server| server.failures > 0) {
            let since = self.down.take().map_or_else(Instant::now, |(since, _)| since);
            self.down = Some((since, problem.to_owned()));
        }
    }

    fn choose(&self, prompt: &str, now: Instant) -> Option<(usize, usize)> {
        let mut best = None;
        for (at, server) in self.servers.iter().enumerate().filter(|(_, s)| s.is_open(now)) {
            let busy = server.slots.iter().filter(|slot| slot.busy).count();
            for (number, slot) in server.slots.iter().enumerate().filter(|(_, slot)| !slot.busy) {
                let shared = shared_length(slot.prompt.as_bytes(), prompt.as_bytes());
                // Less than half is shared by every prompt: no reason to crowd a busy server.
                let serves = if shared * 2 >= prompt.len() { shared } else { 0 };
                let key = (
                    std::cmp::Reverse(serves),
                    busy * 1000 / server.slots.len(),
                    slot.used,
                    at,
                    number,
                );
                if best.as_ref().is_none_or(|(least, _)| key < *least) {
                    best = Some((key, (at, number)));
                }
            }
        }
        best.map(|(_, place)| place)
    }
}

impl Lease<'_> {
    /// Notes which prompt the slot has in memory now.
    pub fn holds(&self, prompt: &str) {
        let mut state = self.pool.lock();
        if let Some(slot) = state.servers[self.server].slots.get_mut(self.slot) {
            prompt.clone_into(&mut slot.prompt);
        }
    }

    /// Notes that the server works.
    pub fn served(&self) {
        let mut state = self.pool.lock();
        state.down = None;
        let server = &mut state.servers[self.server];
        (server.failures, server.rests_until, server.probed) = (0, None, false);
        drop(state);
        self.pool.changed.notify_all();
    }

    /// Notes that the server works, with this number of slots and none of them filled: it may have
    /// been started anew.
    pub fn recovered(&mut self, slots: usize) {
        self.probe = false;
        let mut state = self.pool.lock();
        let server = &mut state.servers[self.server];
        server.slots.resize(slots.max(self.slot + 1), Slot::default());
        server.slots.iter_mut().for_each(|slot| slot.prompt.clear());
        drop(state);
        self.served();
    }

    /// Gives the slot back and leaves its server alone for a while.
    pub fn failed(self, problem: &str) {
        self.pool.lock().failed(self.server, 1, problem);
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        let mut state = self.pool.lock();
        let server = &mut state.servers[self.server];
        if let Some(slot) = server.slots.get_mut(self.slot) {
            slot.busy = false;
        }
        server.probed &= !self.probe;
        drop(state);
        self.pool.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn soon() -> Deadline {
        Deadline::after(Duration::from_secs(20))
    }

    #[test]
    fn a_prompt_goes_where_its_beginning_is() {
        let pool = Pool::new(&[2, 2], Duration::from_secs(1));
        let first = pool.acquire("aaaa 1", soon()).unwrap();
        first.holds("aaaa 1");
        let place = (first.server, first.slot);
        let second = pool.acquire("bbbb 1", soon()).unwrap();
        assert_ne!(second.server, first.server, "the idle server comes first");
        second.holds("bbbb 1");
        drop((first, second));
        let again = pool.acquire("aaaa 2", soon()).unwrap();
        assert_eq!((again.server, again.slot), place);
        // Held: the next one goes elsewhere rather than wait.
        let other = pool.acquire("aaaa 3", soon()).unwrap();
        assert_ne!((other.server, other.slot), place);
    }

    #[test]
    fn a_server_that_fails_is_left_alone_and_then_probed_by_one() {
        let pool = Pool::new(&[2, 2], Duration::from_secs(60));
        for _ in 0..BREAKS_AFTER {
            loop {
                let lease = pool.acquire("", soon()).unwrap();
                if lease.server == 0 {
                    lease.failed("gone");
                    break;
                }
                // Make the other server look busy.
                let second = pool.acquire("", soon()).unwrap();
                let third = pool.acquire("", soon()).unwrap();
                let broken = [lease, second, third].into_iter().find(|l| l.server == 0);
                if let Some(broken) = broken {
                    broken.failed("gone");
                    break;
                }
            }
        }
        let healthy = [pool.acquire("", soon()).unwrap(), pool.acquire("", soon()).unwrap()];
        assert!(healthy.iter().all(|lease| lease.server == 1 && !lease.probe));
        let mut probe = pool.acquire("", soon()).unwrap();
        assert!(probe.server == 0 && probe.probe);
        let short = Deadline::after(Duration::from_millis(50));
        pool.acquire("", short).unwrap_err();
        probe.recovered(4);
        drop(probe);
        assert_eq!(pool.slots(), 6);
        assert!(!pool.acquire("", soon()).unwrap().probe);
    }

    #[test]
    fn a_failure_of_long_ago_does_not_keep_a_server_from_being_asked() {
        let pool = Pool::new(&[1], Duration::from_millis(1));
        pool.acquire("", soon()).unwrap().failed("connection reset");
        // Longer than the patience, and longer than the server is left alone.
        std::thread::sleep(REST.0 * 2);
        pool.acquire("", soon()).unwrap().served();
    }

    #[test]
    fn when_all_servers_fail_patience_ends_by_name() {
        let pool = Pool::new(&[1], Duration::from_millis(100));
        pool.acquire("", soon()).unwrap().failed("connection refused");
        let error = loop {
            match pool.acquire("", soon()) {
                Ok(lease) => lease.failed("connection refused"),
                Err(error) => break error,
            }
        };
        assert!(
            matches!(&error, LlmError::Unavailable { problem, .. } if problem == "connection refused"),
            "{error}"
        );
    }
}
