//! Rates: the price of one part, by prefix of the recipient.

use crate::money::Amount;
use crate::phone::Recipient;

/// The rate table. The longest matching prefix wins.
#[derive(Clone, Debug, Default)]
pub struct Rates {
    default: Option<Amount>,
    by_prefix: Vec<(String, Amount)>,
}

impl Rates {
    /// Builds a table of (prefix, price of one part), which may come in any order. `default`
    /// applies if no prefix matches; without it, such numbers have no price.
    pub fn new(default: Option<Amount>, mut by_prefix: Vec<(String, Amount)>) -> Self {
        by_prefix.sort_by_key(|(prefix, _)| std::cmp::Reverse(prefix.len()));
        Self { default, by_prefix }
    }

    /// Returns whether some messages cost nothing.
    pub fn has_free(&self) -> bool {
        let prices = self.by_prefix.iter().map(|(_, price)| price);
        prices.chain(&self.default).any(|price| *price == Amount::ZERO)
    }

    /// Returns whether no number has a price.
    pub fn is_empty(&self) -> bool {
        self.default.is_none() && self.by_prefix.is_empty()
    }

    /// Returns the price of one part to `recipient`; `None` if the number has no price, so that
    /// nothing can be sent to it.
    pub fn part_price(&self, recipient: Recipient) -> Option<Amount> {
        if self.by_prefix.is_empty() {
            return self.default;
        }
        let digits = recipient.to_string();
        let found = self.by_prefix.iter().find(|(prefix, _)| digits.starts_with(prefix));
        found.map(|(_, price)| *price).or(self.default)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_prefix_wins() {
        let rates = Rates::new(
            Some(Amount(5)),
            vec![
                ("44".into(), Amount(2)),
                ("447700".into(), Amount(3)),
                ("4477".into(), Amount(4)),
            ],
        );
        assert_eq!(rates.part_price(Recipient(447_700_900_123)), Some(Amount(3)));
        assert_eq!(rates.part_price(Recipient(447_799_900_123)), Some(Amount(4)));
        assert_eq!(rates.part_price(Recipient(442_079_460_000)), Some(Amount(2)));
        assert_eq!(rates.part_price(Recipient(6_598_234_567)), Some(Amount(5)));
        let rates = Rates::new(None, vec![("44".into(), Amount(2))]);
        assert_eq!(rates.part_price(Recipient(447_700_900_123)), Some(Amount(2)));
        assert_eq!(rates.part_price(Recipient(6_598_234_567)), None);
    }
}
