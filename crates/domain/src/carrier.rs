//! Carriers: routing by prefix, and the status of their links.

use crate::id::CarrierId;
use crate::phone::Recipient;
use crate::time::Timestamp;

/// The name of the simulated carrier, which takes every message of test mode.
pub const SIMULATED: &str = "simulated";

/// A routing rule: messages to recipients that begin with `prefix` go to the first of `carriers`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// The leading digits of the international number; an empty prefix matches every number.
    pub prefix: String,
    /// The carriers in order of preference; never empty.
    pub carriers: Vec<CarrierId>,
}

/// The routing table. The rule with the longest matching prefix wins.
#[derive(Clone, Debug, Default)]
pub struct RoutingTable(Vec<Route>);

impl RoutingTable {
    /// Builds a table of these rules, which may come in any order.
    pub fn new(mut routes: Vec<Route>) -> Self {
        routes.sort_by_key(|r| std::cmp::Reverse(r.prefix.len()));
        Self(routes)
    }

    /// Returns the carriers for `recipient` in order of preference, or `None` if no rule matches.
    pub fn find(&self, recipient: Recipient) -> Option<&[CarrierId]> {
        let digits = recipient.to_string();
        let route = self.0.iter().find(|r| digits.starts_with(&r.prefix))?;
        Some(&route.carriers)
    }
}

/// The delivery receipts that a carrier sends for a message of several parts.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum ReceiptPolicy {
    /// A receipt for each part.
    #[default]
    All,
    /// One receipt for the message, with the id of its first part.
    First,
    /// One receipt for the message, with the id of its last part.
    Last,
    /// No receipts: messages stay SENT.
    None,
}

impl ReceiptPolicy {
    /// Returns the number of the part of which a message of `parts` parts gets a receipt, if it gets
    /// only one.
    pub const fn only_part(self, parts: u16) -> Option<u16> {
        match self {
            Self::First => Some(1),
            Self::Last => Some(parts),
            Self::All | Self::None => None,
        }
    }
}

/// The status of one node's link to one carrier.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BindStatus {
    /// The carrier.
    pub carrier: CarrierId,
    /// The configured number of SMPP binds.
    pub binds: u16,
    /// The number of binds that are up.
    pub bound: u16,
    /// The window: the maximum number of parts that may await a response.
    pub window: u32,
    /// The number of parts that await a response.
    pub unanswered: u32,
    /// True if the SMSC has recently throttled this link.
    pub throttled: bool,
    /// The last error and its time.
    pub last_error: Option<(String, Timestamp)>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_prefix_wins() {
        let route =
            |prefix: &str, id| Route { prefix: prefix.into(), carriers: vec![CarrierId(id)] };
        let routes = RoutingTable::new(vec![route("", 1), route("4477", 3), route("44", 2)]);
        for (number, carrier) in [(447_700_900_123, 3), (442_079_460_000, 2), (6_598_234_567, 1)] {
            assert_eq!(routes.find(Recipient(number)), Some([CarrierId(carrier)].as_slice()));
        }
        assert_eq!(RoutingTable::default().find(Recipient(447_700_900_123)), None);
    }
}
