//! The interface that every kind of command implements.

use heliograph_store::StoreError;

/// A command to the writer. Commands of one kind are applied in the order of arrival.
pub trait WriterCommand {
    /// Returns the approximate number of rows that the command changes.
    fn weight(&self) -> usize;

    /// Replies that the command was not applied. Data that must not be lost is returned to the
    /// sender.
    fn refuse(self, error: &StoreError);
}
