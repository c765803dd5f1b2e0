//! Passages whose computed state is kept outside the context, for the questions to come.
//!
//! The context's memory is emptied between questions that share little. A passage that many
//! questions retrieve is then computed again for each; copying its state back takes milliseconds.
//! The shelf has a budget of bytes; what has been asked for least often makes room.

use crate::tree::shared_length;

/// Sequences with their states. `T` is a token, `S` a state.
#[derive(Debug)]
pub(crate) struct Shelf<T, S> {
    kept: Vec<Shelved<T, S>>,
    budget: usize,
    clock: u64,
}

#[derive(Debug)]
struct Shelved<T, S> {
    tokens: Vec<T>,
    state: S,
    bytes: usize,
    /// How often it was taken or would have been put again, and when last.
    wanted: (u64, u64),
}

impl<T: Eq + Copy, S> Shelf<T, S> {
    /// A shelf for so many bytes.
    pub fn new(budget: usize) -> Self {
        Shelf { kept: Vec::new(), budget, clock: 0 }
    }

    /// Whether a sequence should be put here: it is not yet, nor most of it (the same passage with
    /// another question). If it is, that counts as a wish for it.
    pub fn lacks(&mut self, tokens: &[T]) -> bool {
        if self.budget == 0 {
            return false;
        }
        match self.find(tokens) {
            Some((at, shared)) if shared * 4 >= tokens.len() * 3 => {
                self.want(at);
                false
            }
            _ => true,
        }
    }

    /// Puts a sequence here; the least wanted make room.
    pub fn put(&mut self, tokens: Vec<T>, state: S, bytes: usize) {
        if bytes > self.budget {
            return;
        }
        let used = |kept: &[Shelved<T, S>]| kept.iter().map(|shelved| shelved.bytes).sum::<usize>();
        while used(&self.kept) + bytes > self.budget {
            let wanted = self.kept.iter().enumerate().min_by_key(|(_, shelved)| shelved.wanted);
            let Some((at, _)) = wanted else { return };
            self.kept.swap_remove(at);
        }
        self.clock += 1;
        self.kept.push(Shelved { tokens, state, bytes, wanted: (1, self.clock) });
    }

    /// The state that shares the longest beginning with `tokens`, how long that is, and how long the
    /// state is itself; if it is at least `least` long.
    pub fn best(&mut self, tokens: &[T], least: usize) -> Option<(&S, usize, usize)> {
        let (at, shared) = self.find(tokens).filter(|&(_, shared)| shared >= least)?;
        self.want(at);
        let shelved = &self.kept[at];
        Some((&shelved.state, shared, shelved.tokens.len()))
    }

    /// Everything that is here.
    pub fn states(&self) -> impl Iterator<Item = (&[T], &S)> {
        self.kept.iter().map(|shelved| (shelved.tokens.as_slice(), &shelved.state))
    }

    fn find(&self, tokens: &[T]) -> Option<(usize, usize)> {
        let shared =
            |(at, shelved): (usize, &Shelved<T, S>)| (at, shared_length(&shelved.tokens, tokens));
        self.kept.iter().enumerate().map(shared).max_by_key(|&(_, shared)| shared)
    }

    fn want(&mut self, at: usize) {
        self.clock += 1;
        let wanted = &mut self.kept[at].wanted;
        *wanted = (wanted.0 + 1, self.clock);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_least_wanted_makes_room() {
        let mut shelf = Shelf::new(20);
        shelf.put(vec![1; 10], "one", 10);
        shelf.put(vec![2; 10], "two", 10);
        assert_eq!(shelf.best(&[1; 12], 5), Some((&"one", 10, 10)));
        shelf.put(vec![3; 10], "three", 10);
        assert_eq!(shelf.best(&[2; 12], 5), None);
        assert_eq!(shelf.best(&[1; 7], 5), Some((&"one", 7, 10)));
        assert_eq!(shelf.best(&[3; 12], 11), None, "too short to be worth it");
    }

    #[test]
    fn a_passage_with_another_question_is_not_put_twice() {
        let mut shelf = Shelf::new(20);
        assert!(shelf.lacks(&[1; 10]));
        shelf.put(vec![1; 10], (), 10);
        assert!(!shelf.lacks(&[1, 1, 1, 1, 1, 1, 1, 1, 2, 2]));
        assert!(shelf.lacks(&[1, 1, 1, 2, 2, 2, 2, 2, 2, 2]));
        assert!(!Shelf::<u8, ()>::new(0).lacks(&[1]));
    }

    proptest! {
        #[test]
        fn the_budget_holds(puts in prop::collection::vec((0_u8..9, 1_usize..40), 0..60)) {
            let mut shelf = Shelf::new(100);
            for (token, bytes) in puts {
                shelf.put(vec![token; 3], (), bytes);
                prop_assert!(shelf.kept.iter().map(|shelved| shelved.bytes).sum::<usize>() <= 100);
            }
        }
    }
}
