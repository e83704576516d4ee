//! Makes responses the same in every run and on both engines, so that snapshots can show them.

use heliograph_domain::time::Timestamp;
use heliograph_testing::START;
use std::cell::RefCell;
use uuid::Uuid;

/// Replaces ids by numbers, because they depend on the time and on all other ids of a test. Shifts
/// times as if the test began at [`START`], because the clock of PostgreSQL cannot be set.
pub(crate) struct Redaction {
    begin: Timestamp,
    /// The ids in the order of their first occurrence.
    ids: RefCell<Vec<String>>,
}

impl Redaction {
    /// Creates the redaction of a test that begins at this time of the database.
    pub(crate) fn new(begin: Timestamp) -> Self {
        Self { begin, ids: RefCell::default() }
    }

    pub(crate) fn apply(&self, text: &str) -> String {
        let mut redacted = text.to_owned();
        for word in text.split(|c: char| !c.is_ascii_alphanumeric() && !"-:.".contains(c)) {
            if word.len() == uuid::fmt::Hyphenated::LENGTH && word.parse::<Uuid>().is_ok() {
                redacted = redacted.replace(word, &format!("[id {}]", self.number(word)));
            } else if let Ok(time) = word.parse::<Timestamp>() {
                let shifted = Timestamp(time.0 - self.begin.0 + START.0);
                redacted = redacted.replace(word, &shifted.to_string());
            }
        }
        redacted
    }

    /// Returns the number of an id, which begins at 1.
    fn number(&self, id: &str) -> usize {
        let mut ids = self.ids.borrow_mut();
        let known = ids.iter().position(|known| known == id);
        known.unwrap_or_else(|| {
            ids.push(id.to_owned());
            ids.len() - 1
        }) + 1
    }
}
