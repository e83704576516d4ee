//! CSV files of phone numbers. Invalid rows are reported and do not affect the others.

use heliograph_domain::fields::{FieldError, Note};
use heliograph_domain::phone::{BadRecipient, Recipient};
use std::borrow::Cow;

/// The maximum number of invalid rows that are reported; all are counted.
const MAX_ERRORS: usize = 1_000;

/// The number of characters of an invalid number that are reported.
const MAX_EXCERPT: usize = 50;

/// A number and its note.
type Entry = (Recipient, Option<Note>);

/// An entry, or the invalid number (cut) and what is wrong.
type ReadEntry = Result<Entry, (String, String)>;

/// An invalid row, or an invalid number in a row.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RowError {
    /// The line number in the file, starting at 1.
    pub row: u64,
    /// The first 50 characters of the invalid number.
    pub number: String,
    /// An explanation of the error for people.
    pub detail: String,
}

impl RowError {
    /// Returns the error as one line of text.
    pub fn describe(&self) -> String {
        format!("Line {}: “{}”: {}", self.row, self.number, self.detail)
    }
}

/// A file that cannot be read at all.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NumberFileError {
    /// The text is not CSV.
    #[error("Invalid CSV file: {0}.")]
    InvalidCsv(String),
    /// A column is named twice.
    #[error("The header row contains the column '{0}' twice.")]
    DuplicateColumn(&'static str),
    /// No column holds the numbers.
    #[error(
        "The file must start with a header row with the column 'number' and, optionally, 'note'."
    )]
    NoNumberColumn,
    /// The file is an `.xlsx` file or another ZIP archive.
    #[error(
        "Spreadsheet files are not supported. Save the spreadsheet as CSV and import that file."
    )]
    Spreadsheet,
    /// A field spans lines: rows after an unclosed quote look like a note, and their numbers would
    /// be lost.
    #[error(
        "Unclosed quote in row {0}, and nothing was stored. Close the quote on the same line, or \
         double it if it is part of the text."
    )]
    UnclosedQuote(u64),
}

/// The contents of a file.
#[derive(Debug, Default)]
pub struct ParsedNumbers {
    /// The valid numbers with their notes.
    pub numbers: Vec<Entry>,
    /// The number of invalid numbers.
    pub invalid: usize,
    /// The errors of the first invalid numbers.
    pub errors: Vec<RowError>,
}

/// Parses a CSV file in UTF-8 whose header row names the columns `number` and, optionally, `note`.
pub fn parse_strict(bytes: &[u8]) -> Result<ParsedNumbers, NumberFileError> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let mut head = csv::ReaderBuilder::new().trim(csv::Trim::All).flexible(true).from_reader(bytes);
    let head = head.headers().map_err(|e| NumberFileError::InvalidCsv(e.to_string()))?;
    for name in ["number", "note"] {
        if head.iter().filter(|h| h.eq_ignore_ascii_case(name)).count() > 1 {
            return Err(NumberFileError::DuplicateColumn(name));
        }
    }
    let number = columns(head, &["number"]);
    if number.is_empty() {
        return Err(NumberFileError::NoNumberColumn);
    }
    let note = columns(head, &["note"]).first().copied();
    Layout { delimiter: b',', head: true, number, note, clean: str::to_owned }.read(bytes)
}

/// Parses pasted or uploaded text as spreadsheets save it: in UTF-8, UTF-16 or Latin-1; separated
/// by commas, semicolons or tabs; with numbers in every column that has one of the usual names.
/// Without a header row, the first column is the number and the second the note, unless another
/// column looks like a number: then all of them are read as numbers.
pub fn parse_lenient(bytes: &[u8]) -> Result<ParsedNumbers, NumberFileError> {
    if bytes.starts_with(b"PK\x03\x04") {
        return Err(NumberFileError::Spreadsheet);
    }
    let text = utf8(bytes);
    let first = text.split(|b| b"\r\n".contains(b)).next().unwrap_or_default();
    let delimiter = first.iter().find(|b| b",;\t".contains(b)).copied().unwrap_or(b',');
    let mut head = csv::ReaderBuilder::new();
    let mut head = head.trim(csv::Trim::All).delimiter(delimiter).from_reader(first);
    let head = head.headers().cloned().unwrap_or_default();
    let number = columns(&head, &NAMES);
    let layout = if number.is_empty() {
        Layout { delimiter, head: false, number: vec![0], note: Some(1), clean }
    } else {
        let note = columns(&head, &["note"]).first().copied();
        Layout { delimiter, head: true, number, note, clean }
    };
    layout.read(&text)
}

/// Removes the characters that spreadsheets and web pages put around a number.
fn clean(number: &str) -> String {
    let visible =
        |c: &char| !matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{feff}');
    let number: String = number.chars().filter(visible).collect();
    let number = number.trim_matches(['=', '"', '\'', ' ', '\u{a0}']);
    let number = number.strip_prefix("tel:").unwrap_or(number);
    number.strip_prefix("00").map_or_else(|| number.to_owned(), |rest| format!("+{rest}"))
}

/// The usual names of a column of phone numbers.
const NAMES: [&str; 18] = [
    "number",
    "numbers",
    "phone",
    "phone number",
    "phone_number",
    "phonenumber",
    "mobile",
    "mobile number",
    "cell",
    "tel",
    "telephone",
    "telefon",
    "telefonnummer",
    "rufnummer",
    "handy",
    "msisdn",
    "recipient",
    "to",
];

fn columns(head: &csv::StringRecord, names: &[&str]) -> Vec<usize> {
    let named = |(_, h): &(usize, &str)| names.iter().any(|name| h.eq_ignore_ascii_case(name));
    head.iter().enumerate().filter(named).map(|(at, _)| at).collect()
}

/// Converts a file to UTF-8 without a byte order mark. Text that is not Unicode is read as Latin-1,
/// in which numbers look the same.
fn utf8(bytes: &[u8]) -> Cow<'_, [u8]> {
    let utf16 = |rest: &[u8], unit: fn([u8; 2]) -> u16| {
        let units = rest.chunks_exact(2).filter_map(|pair| Some(unit(pair.try_into().ok()?)));
        let text: String = char::decode_utf16(units).map(|c| c.unwrap_or('\u{fffd}')).collect();
        Cow::Owned(text.into_bytes())
    };
    match bytes {
        [0xef, 0xbb, 0xbf, rest @ ..] => Cow::Borrowed(rest),
        [0xff, 0xfe, rest @ ..] => utf16(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => utf16(rest, u16::from_be_bytes),
        _ if std::str::from_utf8(bytes).is_ok() => Cow::Borrowed(bytes),
        _ => Cow::Owned(bytes.iter().map(|b| char::from(*b)).collect::<String>().into_bytes()),
    }
}

/// The layout of a file.
struct Layout {
    delimiter: u8,
    /// True if the first line names the columns.
    head: bool,
    /// The indexes of the columns with numbers.
    number: Vec<usize>,
    note: Option<usize>,
    /// Cleans a number before it is parsed.
    clean: fn(&str) -> String,
}

impl Layout {
    fn read(&self, bytes: &[u8]) -> Result<ParsedNumbers, NumberFileError> {
        let mut reader = csv::ReaderBuilder::new();
        reader.flexible(true).trim(csv::Trim::All).delimiter(self.delimiter).has_headers(self.head);
        let mut reader = reader.from_reader(bytes);
        let mut lines = Lines { bytes, counted: 0, line: 1 };
        let mut found = ParsedNumbers::default();
        for row in reader.records() {
            let (line, read) = match &row {
                Ok(row) if row.iter().any(|field| field.contains(['\r', '\n'])) => {
                    let line = row.position().map_or(0, |p| lines.of(p));
                    return Err(NumberFileError::UnclosedQuote(line));
                }
                Ok(row) => (row.position().map_or(0, |p| lines.of(p)), self.row(row)),
                Err(e) => {
                    let error = (String::new(), "the row is not valid UTF-8".to_owned());
                    (e.position().map_or(0, |p| lines.of(p)), vec![Err(error)])
                }
            };
            for entry in read {
                match entry {
                    Ok(entry) => found.numbers.push(entry),
                    Err((number, detail)) => {
                        found.invalid += 1;
                        if found.errors.len() < MAX_ERRORS {
                            found.errors.push(RowError { row: line, number, detail });
                        }
                    }
                }
            }
        }
        Ok(found)
    }

    /// Reads a row. Each valid number counts, whatever else is wrong: a number that is lost here is
    /// a person who opted out and gets messages nevertheless.
    fn row(&self, row: &csv::StringRecord) -> Vec<ReadEntry> {
        let note = self.note.and_then(|at| row.get(at)).filter(|n| !n.is_empty());
        if !self.head {
            // With any separator, since a number that is read as a note would be lost.
            let parts = row.iter().flat_map(|field| field.split([',', ';', '\t']));
            let parts: Vec<_> = parts.map(str::trim).filter(|part| !part.is_empty()).collect();
            let rest = parts.get(1..).unwrap_or_default();
            if rest.iter().any(|part| self.is_like_a_number(part)) {
                return parts.into_iter().map(|part| self.entry(part, None)).collect();
            }
        }
        let fields = self.number.iter().filter_map(|at| row.get(*at)).filter(|n| !n.is_empty());
        let all: Vec<_> = fields.map(|number| self.entry(number, note)).collect();
        if all.is_empty() { vec![self.entry("", note)] } else { all }
    }

    fn entry(&self, number: &str, note: Option<&str>) -> ReadEntry {
        let cut = || number.chars().take(MAX_EXCERPT).collect();
        read(&(self.clean)(number), note).map_err(|detail| (cut(), detail))
    }

    /// Returns whether a text was meant as a phone number: it is one, or it has digits and no
    /// words.
    fn is_like_a_number(&self, text: &str) -> bool {
        let number = (self.clean)(text);
        number.parse::<Recipient>().is_ok()
            || number.chars().filter(char::is_ascii_digit).count() >= 2
                && number.chars().filter(|c| c.is_alphabetic()).count() <= 1
    }
}

/// Counts lines. The position that the CSV reader reports is the end of the previous row, before
/// the line break, of which it has consumed one half if lines end in CR LF.
struct Lines<'a> {
    bytes: &'a [u8],
    counted: usize,
    line: u64,
}

impl Lines<'_> {
    /// Returns the line on which the row at this position begins. Must be called in the order of
    /// the rows.
    fn of(&mut self, position: &csv::Position) -> u64 {
        let begin = usize::try_from(position.byte()).unwrap_or(usize::MAX);
        let rest = self.bytes.get(begin..).unwrap_or_default();
        let begin = begin + rest.iter().take_while(|b| b"\r\n".contains(b)).count();
        let passed = self.bytes.get(self.counted..begin).unwrap_or_default();
        // A line ends in LF, in CR LF, or in CR.
        let ends = passed.iter().zip(passed.iter().skip(1).chain([&b' ']));
        let ends = ends.filter(|&(this, next)| *this == b'\n' || *this == b'\r' && *next != b'\n');
        self.line += ends.count() as u64;
        self.counted = begin;
        self.line
    }
}

fn read(number: &str, note: Option<&str>) -> Result<Entry, String> {
    let number = number.parse().map_err(|e: BadRecipient| e.to_string())?;
    let note = note.map(str::parse).transpose().map_err(|e: FieldError| e.to_string())?;
    Ok((number, note))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_rows_are_reported_and_valid_ones_kept() {
        let file = "\u{feff}Note, NUMBER\r\nasked,+447700900123\n\n,\"447700900124\"\nx,12\n,\nz\n";
        let read = parse_strict(file.as_bytes()).unwrap();
        let expected = [(447_700_900_123, Some("asked".parse().unwrap())), (447_700_900_124, None)];
        assert_eq!(read.numbers, expected.map(|(n, note)| (Recipient(n), note)));
        assert_eq!((read.invalid, read.errors[0].row, &*read.errors[0].number), (3, 5, "12"));
    }

    #[test]
    fn line_numbers_are_right_for_all_line_endings() {
        for end in ["\n", "\r\n", "\r"] {
            let rows =
                ["number,note", "1,", "447700900123,\"a \"\"b\"\"\"", "", "2,", "", "", "3,"];
            let read = parse_strict(rows.join(end).as_bytes()).unwrap();
            let lines: Vec<_> = read.errors.iter().map(|e| (e.row, &*e.number)).collect();
            assert_eq!(lines, [(2, "1"), (5, "2"), (8, "3")], "{end:?}");
            assert_eq!(read.numbers[0].1, Some("a \"b\"".parse().unwrap()));
        }
    }

    #[test]
    fn unclosed_quote_loses_no_numbers() {
        for file in [
            "number,note\n1,\n447700900123,\"old system\n447700900124,\n447700900125,\n",
            "number,note\n1,\n447700900123,\"old system\n447700900124,\"new\n",
            "number\n1\n\"447700900123\n447700900124\n",
        ] {
            let error = parse_strict(file.as_bytes()).unwrap_err();
            assert_eq!(error, NumberFileError::UnclosedQuote(3));
        }
    }

    #[test]
    fn file_without_a_header_row_is_rejected() {
        for file in ["", "447700900123\n447700900124", "phone\n1", "number,Number\n1,2"] {
            assert!(parse_strict(file.as_bytes()).is_err(), "{file}");
        }
    }

    #[test]
    fn pasted_text_needs_no_header_row() {
        let good = [(Recipient(447_700_900_123), None), (Recipient(447_700_900_124), None)];
        for file in ["+447700900123\r\n+44 7700 900124", "Number\n447700900123\n447700900124\n"] {
            assert_eq!(parse_lenient(file.as_bytes()).unwrap().numbers, good, "{file}");
        }
        let read = parse_lenient(b"\xef\xbb\xbf+447700900123,\"by phone\"\n12\n").unwrap();
        assert_eq!(read.numbers[0].1, Some("by phone".parse().unwrap()));
        assert!(
            read.errors[0].describe().starts_with("Line 2: “12”: "),
            "{}",
            read.errors[0].describe()
        );
        assert_eq!(parse_lenient(b"").unwrap().numbers, []);
    }

    #[test]
    fn spreadsheet_exports_are_supported() {
        let good = [(Recipient(447_700_900_123), None), (Recipient(447_700_900_124), None)];
        let tabs = "Name\tPhone\r\nAnn\t+447700900123\r\nBob\t447700900124\r\n";
        let wide = |unit: fn(u16) -> [u8; 2]| {
            std::iter::once(0xfeff).chain(tabs.encode_utf16()).flat_map(unit).collect::<Vec<_>>()
        };
        for file in [
            b"Name;Mobile number;Town\nAnn;+44 7700 900123;Ely\nBob;447700900124;\n".to_vec(),
            b"+447700900123;+447700900124".to_vec(),
            b"+447700900123, ; 447700900124".to_vec(),
            b"phone;Telefon\r\n+447700900123;\r\n;00447700900124\r\n".to_vec(),
            b"mobile,phone\n=\"+447700900123\",'+447700900124\n".to_vec(),
            "tel:+447700900123\n\u{202a}+447700900124\u{202c}\n".as_bytes().to_vec(),
            b"Name;Handy\nM\xfcller;+447700900123\nJos\xe9;+447700900124\n".to_vec(),
            b"+447700900123, 447700900124\n".to_vec(),
            tabs.as_bytes().to_vec(),
            wide(u16::to_le_bytes),
            wide(u16::to_be_bytes),
        ] {
            let read = parse_lenient(&file).unwrap();
            assert_eq!((&read.numbers[..], read.invalid), (&good[..], 0), "{file:?}");
        }
        let read = parse_lenient(b"+447700900123,order 7\n+447700900124,asked\n").unwrap();
        let notes: Vec<_> =
            read.numbers.iter().map(|(_, note)| note.as_ref().map(Note::as_str)).collect();
        assert_eq!(notes, [Some("order 7"), Some("asked")]);
        let error = parse_lenient(b"PK\x03\x04...").unwrap_err();
        assert_eq!(error, NumberFileError::Spreadsheet);
    }

    #[test]
    fn an_invalid_number_in_a_line_loses_no_others() {
        for (line, invalid) in [
            ("+447700900123, 0770090073, +447700900124, +447700900125", "0770090073"),
            ("+447700900123,12,+447700900124,+447700900125", "12"),
            ("+447700900123;+44770090073x;+447700900124;+447700900125", "+44770090073x"),
            ("+447700900123,bob@example.com,+447700900124,+447700900125", "bob@example.com"),
            ("bob,+447700900123,+447700900124,+447700900125", "bob"),
        ] {
            let read = parse_lenient(line.as_bytes()).unwrap();
            let numbers: Vec<_> = read.numbers.iter().map(|(number, _)| number.0).collect();
            assert_eq!(numbers, [447_700_900_123, 447_700_900_124, 447_700_900_125], "{line}");
            assert_eq!((read.invalid, &*read.errors[0].number), (1, invalid), "{line}");
        }
        let two_columns = "mobile,phone\n+447700900123,12\n";
        let read = parse_lenient(two_columns.as_bytes()).unwrap();
        assert_eq!((read.numbers.len(), read.invalid), (1, 1));
    }

    #[test]
    fn error_of_a_long_line_is_truncated() {
        let read = parse_lenient("7".repeat(2_000_000).as_bytes()).unwrap();
        assert!(read.invalid == 1 && read.errors[0].describe().len() < 300);
    }

    #[test]
    fn row_with_an_invalid_note_is_skipped() {
        let file = format!("number,note\n447700900123,{}\n447700900124,a\0\n", "短".repeat(256));
        let read = parse_strict(file.as_bytes()).unwrap();
        let details: Vec<_> = read.errors.iter().map(|e| &*e.detail).collect();
        let too_long = "the note must not exceed 255 characters";
        assert_eq!(details, [too_long, "the note must not contain the character '\\0'"]);
        let file = format!("number,note\n447700900123,{}\n", "短".repeat(255));
        assert_eq!(parse_strict(file.as_bytes()).unwrap().numbers.len(), 1);
    }

    #[test]
    fn row_with_invalid_utf8_is_skipped() {
        let read = parse_strict(b"number\n\xff\xfe\n447700900123\n").unwrap();
        assert_eq!((read.numbers.len(), read.invalid), (1, 1));
    }
}
