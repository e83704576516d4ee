//! The list of all kinds of commands, and the batch that holds the commands of one transaction.

use crate::kernel::commands::accept::Accept;
use crate::kernel::commands::cancel::Cancel;
use crate::kernel::commands::check_commit::CheckCommit;
use crate::kernel::commands::claim::ClaimMessages;
use crate::kernel::commands::claim_deliveries::ClaimDeliveries;
use crate::kernel::commands::expire::Expire;
use crate::kernel::commands::progress::RecordProgress;
use crate::kernel::commands::renew::Renew;
use crate::kernel::commands::report_deliveries::ReportDeliveries;
use crate::kernel::commands::writer_command::WriterCommand;
use heliograph_store::StoreError;

/// Declares [`Command`] and [`Batch`] from one line for each kind: the description, the type, and
/// the name of its commands in a batch.
macro_rules! command_kinds {
    ($($(#[$description:meta])* $kind:ident => $commands:ident,)+) => {
        /// A command to the writer.
        #[derive(Debug)]
        pub enum Command {
            $($(#[$description])* $kind($kind),)+
        }

        /// The commands of one transaction, sorted by kind; each kind in the order of arrival.
        #[derive(Debug, Default)]
        pub struct Batch {
            $($(#[$description])* pub $commands: Vec<$kind>,)+
            weight: usize,
        }

        impl Batch {
            /// Adds a command.
            pub(crate) fn push(&mut self, command: Command) {
                match command {
                    $(Command::$kind(command) => {
                        self.weight += command.weight();
                        self.$commands.push(command);
                    })+
                }
            }

            /// Returns the number of commands.
            pub(crate) fn len(&self) -> usize {
                0 $(+ self.$commands.len())+
            }

            /// Splits the batch in two, so that one bad command is isolated and the others succeed.
            /// The order within a kind is kept: the first half is written first.
            pub(crate) fn split(mut self) -> (Self, Self) {
                // Counted over all kinds: splitting each kind in half would never separate single
                // commands of different kinds.
                let mut first = self.len() / 2;
                let second = Self {
                    $($commands: split_off(&mut self.$commands, &mut first),)+
                    weight: 0,
                };
                (self, second)
            }

            /// Refuses all commands.
            pub(crate) fn refuse(self, error: &StoreError) {
                $(for command in self.$commands {
                    command.refuse(error);
                })+
            }
        }
    };
}

command_kinds! {
    /// Creation of a message.
    Accept => accepts,
    /// Progress reported by a carrier.
    RecordProgress => progress,
    /// Claim of a dispatcher.
    ClaimMessages => claims,
    /// Renewal of leases.
    Renew => renewals,
    /// Failure of messages whose validity has ended.
    Expire => expiries,
    /// Cancellation of a message.
    Cancel => cancels,
    /// Claim of an endpoint worker.
    ClaimDeliveries => delivery_claims,
    /// Results of webhook deliveries.
    ReportDeliveries => delivery_reports,
    /// Check of the node's health.
    CheckCommit => commit_checks,
}

impl Batch {
    /// Returns the approximate number of rows that the batch changes. The halves of a split batch
    /// are not weighed again.
    pub(crate) const fn weight(&self) -> usize {
        self.weight
    }
}

/// Keeps at most `first` commands and returns the others; subtracts the kept ones from `first`.
fn split_off<T>(commands: &mut Vec<T>, first: &mut usize) -> Vec<T> {
    let stay = commands.len().min(*first);
    *first -= stay;
    commands.split_off(stay)
}
