//! Bookkeeping of what the context's memory holds: which token sequences, and how many cells.
//!
//! llama.cpp lets sequences share cells (a copy of a prefix costs nothing). Here every run of tokens
//! that was computed is counted until no sequence refers to it any more.

use std::collections::HashMap;

use crate::tree::shared_length;

/// A sequence that is in memory.
#[derive(Debug, Clone)]
struct Kept<T> {
    tokens: Vec<T>,
    runs: Vec<u64>,
    used: u64,
    /// Whether its tokens have been computed; until then nothing may go on from it.
    ready: bool,
}

/// What is in memory. `T` is a token.
#[derive(Debug)]
pub(crate) struct Cache<T> {
    kept: Vec<Option<Kept<T>>>,
    /// Length of each computed run, and how many sequences refer to it.
    runs: HashMap<u64, (usize, usize)>,
    cells: usize,
    clock: u64,
}

impl<T: Eq + Copy> Cache<T> {
    /// A memory of `cells` tokens and `sequences` sequences.
    pub fn new(cells: usize, sequences: usize) -> Self {
        Cache { kept: vec![None; sequences], runs: HashMap::new(), cells, clock: 0 }
    }

    /// Cells in use, never less than the truth.
    pub fn used(&self) -> usize {
        self.runs.values().map(|(length, _)| length).sum()
    }

    /// The computed sequence that shares the longest beginning with `tokens`, and how long that is.
    pub fn best(&self, tokens: &[T]) -> Option<(usize, usize)> {
        self.kept
            .iter()
            .enumerate()
            .filter_map(|(at, kept)| Some((at, kept.as_ref().filter(|kept| kept.ready)?)))
            .map(|(at, kept)| (at, shared_length(&kept.tokens, tokens)))
            .filter(|&(_, shared)| shared > 0)
            .max_by_key(|&(_, shared)| shared)
    }

    /// Marks a sequence as just used.
    pub fn touch(&mut self, sequence: usize) {
        self.clock += 1;
        if let Some(Some(kept)) = self.kept.get_mut(sequence) {
            kept.used = self.clock;
        }
    }

    /// Makes room for one more sequence with `fresh` tokens of its own: names the sequences to be
    /// forgotten (the longest unused first, never a pinned one) and a free number. Nothing when even
    /// an empty memory would not do.
    pub fn make_room(&mut self, fresh: usize, pinned: &[usize]) -> Option<(Vec<usize>, usize)> {
        let mut forgotten = Vec::new();
        loop {
            let free = self.kept.iter().position(Option::is_none);
            if let Some(free) = free
                && self.used() + fresh <= self.cells
            {
                return Some((forgotten, free));
            }
            let oldest = self
                .kept
                .iter()
                .enumerate()
                .filter(|(at, _)| !pinned.contains(at))
                .filter_map(|(at, kept)| Some((kept.as_ref()?.used, at)))
                .min()?
                .1;
            self.forget(oldest);
            forgotten.push(oldest);
        }
    }

    /// Notes that the tokens of a sequence have been computed.
    pub fn ready(&mut self, sequence: usize) {
        if let Some(Some(kept)) = self.kept.get_mut(sequence) {
            kept.ready = true;
        }
    }

    /// Notes a new sequence: the first `shared` tokens are those of `base`, the rest are still to be
    /// computed.
    pub fn keep(&mut self, sequence: usize, base: Option<usize>, shared: usize, tokens: Vec<T>) {
        self.clock += 1;
        let mut runs = match base.and_then(|base| self.kept[base].as_ref()) {
            Some(base) if shared > 0 => base.runs.clone(),
            _ => Vec::new(),
        };
        for run in &runs {
            if let Some((_, references)) = self.runs.get_mut(run) {
                *references += 1;
            }
        }
        self.runs.insert(self.clock, (tokens.len() - shared, 1));
        runs.push(self.clock);
        self.kept[sequence] = Some(Kept { tokens, runs, used: self.clock, ready: false });
    }

    /// Notes that a sequence is gone.
    pub fn forget(&mut self, sequence: usize) {
        let Some(kept) = self.kept.get_mut(sequence).and_then(Option::take) else { return };
        for run in kept.runs {
            if let Some((_, references)) = self.runs.get_mut(&run) {
                *references -= 1;
                if *references == 0 {
                    self.runs.remove(&run);
                }
            }
        }
    }

    /// The computed sequences, the longest first, and their tokens.
    pub fn computed(&self) -> Vec<(usize, &[T])> {
        let mut computed: Vec<(usize, &[T])> = self
            .kept
            .iter()
            .enumerate()
            .filter_map(|(at, kept)| Some((at, kept.as_ref().filter(|kept| kept.ready)?)))
            .map(|(at, kept)| (at, kept.tokens.as_slice()))
            .collect();
        computed.sort_by_key(|(_, tokens)| std::cmp::Reverse(tokens.len()));
        computed
    }

    /// Notes that everything is gone.
    pub fn clear(&mut self) {
        self.kept.iter_mut().for_each(|kept| *kept = None);
        self.runs.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fork_costs_only_its_own_tokens() {
        let mut cache = Cache::new(100, 4);
        cache.keep(0, None, 0, vec![1; 40]);
        cache.keep(1, Some(0), 40, [vec![1; 40], vec![2; 10]].concat());
        assert_eq!(cache.used(), 50);
        cache.forget(0);
        assert_eq!(cache.used(), 50, "the fork still needs what it shares");
        cache.forget(1);
        assert_eq!(cache.used(), 0);
    }

    #[test]
    fn room_is_made_by_forgetting_the_longest_unused() {
        let mut cache = Cache::new(100, 4);
        cache.keep(0, None, 0, vec![1; 40]);
        cache.keep(1, None, 0, vec![2; 40]);
        cache.touch(0);
        assert_eq!(cache.make_room(30, &[]), Some((vec![1], 1)));
        assert_eq!(cache.make_room(90, &[0]), None, "a pinned sequence stays");
    }

    #[test]
    fn the_longest_shared_beginning_is_found() {
        let mut cache = Cache::new(100, 4);
        cache.keep(0, None, 0, vec![1, 2, 3, 4]);
        cache.keep(1, None, 0, vec![1, 2, 9]);
        cache.ready(1);
        assert_eq!(cache.best(&[1, 2, 3, 7]), Some((1, 2)), "nothing goes on from what waits");
        cache.ready(0);
        assert_eq!(cache.best(&[1, 2, 3, 7]), Some((0, 3)));
        assert_eq!(cache.best(&[5]), None);
    }
}
