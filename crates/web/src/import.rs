//! Files of numbers: CSV, read row by row; what is wrong with one row does not spoil the others.

use crate::error::Problem;
use heliograph_domain::phone::Recipient;
use serde::Serialize;
use std::borrow::Cow;
use utoipa::ToSchema;

/// Rows of which it is said what is wrong; all are counted.
const MOST_ERRORS: usize = 1_000;
const NOTE_LIMIT: usize = 255;

/// Characters of a bad number that are shown.
const SHOWN: usize = 50;

/// A number with its note.
type Entry = (Recipient, Option<String>);

/// One row that can't be used.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = RowError)]
pub(crate) struct RowError {
    /// The line in the file, from 1.
    row: u64,
    /// What stands there for the number, its first 50 characters.
    number: String,
    /// What is wrong with it.
    detail: String,
}

impl RowError {
    /// The same as one line for a person.
    pub(crate) fn line(&self) -> String {
        format!("Line {}: “{}”: {}", self.row, self.number, self.detail)
    }

    /// One for the document.
    pub(crate) fn sample() -> Self {
        let detail =
            "the number has too few digits: write it in full, with its country and area code";
        Self { row: 4, number: "12".to_owned(), detail: detail.to_owned() }
    }
}

/// What a file says.
#[derive(Debug, Default)]
pub(crate) struct Numbers {
    /// Each once, with its note.
    pub(crate) numbers: Vec<Entry>,
    /// Rows that can't be used.
    pub(crate) invalid: usize,
    /// The first of those.
    pub(crate) errors: Vec<RowError>,
}

/// Reads a file with a head line that names the columns: `number`, and `note` if there is one.
pub(crate) fn numbers(bytes: &[u8]) -> Result<Numbers, Problem> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let mut head = csv::ReaderBuilder::new().trim(csv::Trim::All).flexible(true).from_reader(bytes);
    let head = head.headers().map_err(|e| Problem::invalid(format!("No CSV: {e}."), Vec::new()))?;
    for name in ["number", "note"] {
        if head.iter().filter(|h| h.eq_ignore_ascii_case(name)).count() > 1 {
            let what = format!("The first line names the column '{name}' twice.");
            return Err(Problem::invalid(what, Vec::new()));
        }
    }
    let number = columns(head, &["number"]);
    if number.is_empty() {
        let what = "The first line must name the columns: 'number', and 'note' if there is one.";
        return Err(Problem::invalid(what, Vec::new()));
    }
    let note = columns(head, &["note"]).first().copied();
    Layout { delimiter: b',', head: true, number, note, clean: str::to_owned }.read(bytes)
}

/// The same for what a person pastes or picks, as spreadsheets save it: in UTF-8, UTF-16 or Latin-1; parted by commas,
/// semicolons or tabs; numbers in each column with one of their usual names. Without a head line the first column is the
/// number and the second a note, unless all that stands in a line are numbers.
pub(crate) fn loose(bytes: &[u8]) -> Result<Numbers, Problem> {
    if bytes.starts_with(b"PK\x03\x04") {
        let what = "This is a spreadsheet, not a text: save it as CSV, and import that.";
        return Err(Problem::invalid(what, Vec::new()));
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

/// A number without what spreadsheets and pages put around it.
fn clean(number: &str) -> String {
    let unseen =
        |c: &char| !matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{feff}');
    let number: String = number.chars().filter(unseen).collect();
    let number = number.trim_matches(['=', '"', '\'', ' ', '\u{a0}']);
    let number = number.strip_prefix("tel:").unwrap_or(number);
    number.strip_prefix("00").map_or_else(|| number.to_owned(), |rest| format!("+{rest}"))
}

/// What the column of numbers is called.
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

/// A file without its byte order mark, in UTF-8. What is no Unicode is taken for Latin-1: numbers read alike in all of
/// those.
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

/// Where what stands in a file.
struct Layout {
    delimiter: u8,
    /// The first line names the columns.
    head: bool,
    /// Where numbers are.
    number: Vec<usize>,
    note: Option<usize>,
    /// What is done to a number before it is read.
    clean: fn(&str) -> String,
}

impl Layout {
    fn read(&self, bytes: &[u8]) -> Result<Numbers, Problem> {
        let mut reader = csv::ReaderBuilder::new();
        reader.flexible(true).trim(csv::Trim::All).delimiter(self.delimiter).has_headers(self.head);
        let mut reader = reader.from_reader(bytes);
        let mut lines = Lines { bytes, counted: 0, line: 1 };
        let mut found = Numbers::default();
        for row in reader.records() {
            let (line, written, read) = match &row {
                Ok(row) if row.iter().any(|field| field.contains(['\r', '\n'])) => {
                    let line = row.position().map_or(0, |p| lines.of(p));
                    return Err(open_quote(line));
                }
                Ok(row) => {
                    let written = self.number.first().and_then(|at| row.get(*at));
                    let written = written.unwrap_or_default();
                    let line = row.position().map_or(0, |p| lines.of(p));
                    (line, written, self.row(row, written))
                }
                Err(e) => {
                    let line = e.position().map_or(0, |p| lines.of(p));
                    (line, "", Err("This row is not UTF-8 text.".to_owned()))
                }
            };
            match read {
                Ok(entries) => found.numbers.extend(entries),
                Err(detail) => {
                    found.invalid += 1;
                    if found.errors.len() < MOST_ERRORS {
                        let number = written.chars().take(SHOWN).collect();
                        found.errors.push(RowError { row: line, number, detail });
                    }
                }
            }
        }
        Ok(found)
    }

    fn row(&self, row: &csv::StringRecord, written: &str) -> Result<Vec<Entry>, String> {
        let read = |number: &str, note| read(&(self.clean)(number), note);
        if !self.head {
            // However they are parted: a number in a note would be lost.
            let all = row.iter().flat_map(|field| field.split([',', ';', '\t']));
            let all = all.filter(|part| !part.trim().is_empty()).map(|part| read(part, None));
            if let Ok(all) = all.collect::<Result<Vec<_>, _>>()
                && all.len() > 1
            {
                return Ok(all);
            }
        }
        let note = self.note.and_then(|at| row.get(at)).filter(|n| !n.is_empty());
        let fields = self.number.iter().filter_map(|at| row.get(*at)).filter(|n| !n.is_empty());
        let all: Vec<_> = fields.map(|number| read(number, note)).collect::<Result<_, _>>()?;
        if all.is_empty() { Ok(vec![read(written, note)?]) } else { Ok(all) }
    }
}

/// Rows that an open quote has swallowed can't be told from a note, and whoever is in them must not be lost.
fn open_quote(line: u64) -> Problem {
    let what = format!(
        "In row {line} a quote is opened that is not closed on the same line. Nothing was stored: close it, or double \
         it where it is part of the text."
    );
    Problem::invalid(what, Vec::new())
}

/// Counts lines. The reader's own count is that of the line on which the row before ends: it has not yet seen
/// what parts the two, which is an end of line and a half when lines end in CR LF.
struct Lines<'a> {
    bytes: &'a [u8],
    counted: usize,
    line: u64,
}

impl Lines<'_> {
    /// The line on which the row at this position begins; rows come in their order.
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
    let number =
        number.parse().map_err(|e: heliograph_domain::phone::BadRecipient| e.to_string())?;
    match note {
        Some(note) if note.chars().count() > NOTE_LIMIT => {
            Err(format!("the note is longer than {NOTE_LIMIT} characters"))
        }
        Some(note) if note.contains('\0') => Err("the note holds the character NUL".to_owned()),
        note => Ok((number, note.map(str::to_owned))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_rows_are_told_and_good_ones_kept() {
        let file = "\u{feff}Note, NUMBER\r\nasked,+447700900123\n\n,\"447700900124\"\nx,12\n,\nz\n";
        let read = numbers(file.as_bytes()).unwrap();
        let expected = [(447_700_900_123, Some("asked".to_owned())), (447_700_900_124, None)];
        assert_eq!(read.numbers, expected.map(|(n, note)| (Recipient(n), note)));
        assert_eq!((read.invalid, read.errors[0].row, &*read.errors[0].number), (3, 5, "12"));
    }

    #[test]
    fn rows_are_named_by_their_line_however_lines_end() {
        for end in ["\n", "\r\n", "\r"] {
            let rows =
                ["number,note", "1,", "447700900123,\"a \"\"b\"\"\"", "", "2,", "", "", "3,"];
            let read = numbers(rows.join(end).as_bytes()).unwrap();
            let lines: Vec<_> = read.errors.iter().map(|e| (e.row, &*e.number)).collect();
            assert_eq!(lines, [(2, "1"), (5, "2"), (8, "3")], "{end:?}");
            assert_eq!(read.numbers[0].1.as_deref(), Some("a \"b\""));
        }
    }

    #[test]
    fn nobody_is_lost_in_an_open_quote() {
        for file in [
            "number,note\n1,\n447700900123,\"old system\n447700900124,\n447700900125,\n",
            "number,note\n1,\n447700900123,\"old system\n447700900124,\"new\n",
            "number\n1\n\"447700900123\n447700900124\n",
        ] {
            let problem = format!("{:?}", numbers(file.as_bytes()).unwrap_err());
            assert!(problem.contains("In row 3 "), "{problem}");
        }
    }

    #[test]
    fn a_file_without_its_head_is_refused() {
        for file in ["", "447700900123\n447700900124", "phone\n1", "number,Number\n1,2"] {
            assert!(numbers(file.as_bytes()).is_err(), "{file}");
        }
    }

    #[test]
    fn a_person_need_not_name_the_columns() {
        let good = [(Recipient(447_700_900_123), None), (Recipient(447_700_900_124), None)];
        for file in ["+447700900123\r\n+44 7700 900124", "Number\n447700900123\n447700900124\n"] {
            assert_eq!(loose(file.as_bytes()).unwrap().numbers, good, "{file}");
        }
        let read = loose(b"\xef\xbb\xbf+447700900123,\"by phone\"\n12\n").unwrap();
        assert_eq!(read.numbers[0].1.as_deref(), Some("by phone"));
        assert!(read.errors[0].line().starts_with("Line 2: “12”: "), "{}", read.errors[0].line());
        assert_eq!(loose(b"").unwrap().numbers, []);
    }

    #[test]
    fn files_are_taken_as_spreadsheets_save_them() {
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
            let read = loose(&file).unwrap();
            assert_eq!((&read.numbers[..], read.invalid), (&good[..], 0), "{file:?}");
        }
        let read = loose(b"+447700900123,order 7\n+447700900124,+44770\n").unwrap();
        let notes: Vec<_> = read.numbers.iter().map(|(_, note)| note.as_deref()).collect();
        assert_eq!(notes, [Some("order 7"), Some("+44770")]);
        let spreadsheet = format!("{:?}", loose(b"PK\x03\x04...").unwrap_err());
        assert!(spreadsheet.contains("save it as CSV"), "{spreadsheet}");
    }

    #[test]
    fn of_a_long_line_its_beginning_is_shown() {
        let read = loose("7".repeat(2_000_000).as_bytes()).unwrap();
        assert!(read.invalid == 1 && read.errors[0].line().len() < 300);
    }

    #[test]
    fn bytes_that_are_no_text_cost_a_row() {
        let read = numbers(b"number\n\xff\xfe\n447700900123\n").unwrap();
        assert_eq!((read.numbers.len(), read.invalid), (1, 1));
    }
}
