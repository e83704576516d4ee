//! Loads the rate table, a CSV file with prefix, price per part and currency.

use anyhow::{Context, bail};
use heliograph_domain::money::Amount;
use heliograph_domain::rate::Rates;
use serde::Deserialize;
use std::collections::HashSet;
use std::path::Path;

#[derive(Deserialize)]
struct RateRow {
    prefix: String,
    price: String,
    currency: String,
}

/// Loads the rates from `file`, if there is one; prices must be in `currency`.
pub(crate) fn load(
    default: Option<Amount>,
    file: Option<&Path>,
    currency: &str,
) -> anyhow::Result<Rates> {
    let Some(file) = file else { return Ok(Rates::new(default, Vec::new())) };
    let mut reader = csv::ReaderBuilder::new()
        .trim(csv::Trim::All)
        .from_path(file)
        .with_context(|| format!("rates.file: failed to read {}", file.display()))?;
    let (mut by_prefix, mut seen) = (Vec::new(), HashSet::new());
    for (n, line) in (2..).zip(reader.deserialize()) {
        let at = || format!("rates.file {} line {n}", file.display());
        let RateRow { prefix, price, currency: c } = line.with_context(at)?;
        if !prefix.bytes().all(|b| b.is_ascii_digit()) {
            bail!("{}: prefix '{prefix}' must contain only digits", at());
        }
        if c != currency {
            bail!("{}: currency is {c}, but accounts.currency is {currency}", at());
        }
        let price: Amount = price.parse().with_context(at)?;
        if price < Amount::ZERO {
            bail!("{}: price must not be negative", at());
        }
        if !seen.insert(prefix.clone()) {
            bail!("{}: duplicate prefix '{prefix}'", at());
        }
        by_prefix.push((prefix, price));
    }
    Ok(Rates::new(default, by_prefix))
}
