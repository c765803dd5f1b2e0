//! Which `id` a deep link to a block goes to.
//!
//! It is the nearest one at or before the block among those whose element is still open, whose heading
//! is still in force, or that stood in an empty element of an open block. Ids that a tool has made up
//! (`idm185`) may be other ones after the next build: they count on headings, sections and notes, where
//! nothing better names the place, and elsewhere only if there is no other.

/// How many open ids are looked at for one block.
const NEAR: usize = 64;

/// An id in force.
#[derive(Debug)]
struct Anchor {
    /// Index of the frame that it is in force in.
    frame: usize,
    /// Counts up along the page.
    order: usize,
    id: String,
    firm: bool,
    /// Its own element is closed; the block around it holds it.
    holds_on: bool,
}

/// The ids in force at one place of the page.
#[derive(Debug, Default)]
pub(super) struct Anchors {
    /// Sorted by frame.
    open: Vec<Anchor>,
    /// The ids of the headings in force: index of the heading, order, id.
    headings: Vec<(usize, usize, String)>,
    /// The ids in the heading that is open.
    heading: Option<Vec<String>>,
    order: usize,
}

impl Anchors {
    /// An element with an id opens.
    pub(super) fn add(&mut self, frame: usize, id: &str, firm: bool, in_heading: bool) {
        self.order += 1;
        if in_heading && let Some(ids) = &mut self.heading {
            ids.push(id.to_owned());
        }
        self.open.push(Anchor {
            frame,
            order: self.order,
            id: id.to_owned(),
            firm,
            holds_on: false,
        });
    }

    /// The element of this frame closes. Its id ends, or holds on in the block `heir` that it stands
    /// in. In the head of a section it names the section.
    pub(super) fn close(&mut self, frame: usize, heir: Option<usize>, heads_section: bool) {
        // Sorted by frame, and frames close innermost first: the ids concerned are the last ones.
        let first =
            self.open.iter().rposition(|anchor| anchor.frame < frame).map_or(0, |at| at + 1);
        let closed = self.open.split_off(first);
        let Some(heir) = heir else { return };
        for mut anchor in closed {
            anchor.frame = heir;
            anchor.firm |= heads_section;
            let at = self.open.partition_point(|other| other.frame <= heir);
            // At one place the last id is enough, and a made-up one never pushes out another.
            if let Some(before) = at.checked_sub(1).map(|at| &self.open[at])
                && before.frame == heir
                && before.holds_on
                && (anchor.firm || !before.firm)
            {
                self.open.remove(at - 1);
                anchor.holds_on = true;
                self.open.insert(at - 1, anchor);
            } else {
                anchor.holds_on = true;
                self.open.insert(at, anchor);
            }
        }
    }

    /// A heading opens.
    pub(super) fn open_heading(&mut self) {
        self.heading = Some(Vec::new());
    }

    /// The open heading closes; it is the one with this index from now on. Gives its own id.
    pub(super) fn close_heading(&mut self, index: Option<usize>) -> Option<String> {
        let ids = self.heading.take()?;
        let index = index?;
        let own = ids.iter().find(|id| !super::rules::is_generated(id)).or(ids.first())?;
        self.order += 1;
        self.headings.push((index, self.order, own.clone()));
        Some(own.clone())
    }

    /// Only the first `count` headings are in force now.
    pub(super) fn drop_headings(&mut self, count: usize) {
        while self.headings.last().is_some_and(|(index, ..)| *index >= count) {
            self.headings.pop();
        }
    }

    /// The id that a deep link to a block beginning here goes to.
    pub(super) fn nearest(&self) -> Option<String> {
        // Sorted by depth: hostile nesting must not make every block search all of it.
        let near = || self.open.iter().rev().take(NEAR);
        let open = near().filter(|anchor| anchor.firm).max_by_key(|anchor| anchor.order);
        let heading = self.headings.last();
        match (open, heading) {
            (Some(open), Some((_, order, id))) => {
                Some(if open.order > *order { open.id.clone() } else { id.clone() })
            }
            (Some(open), None) => Some(open.id.clone()),
            (None, Some((_, _, id))) => Some(id.clone()),
            (None, None) => {
                near().max_by_key(|anchor| anchor.order).map(|anchor| anchor.id.clone())
            }
        }
    }
}
