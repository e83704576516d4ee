//! Reads HTML as far as the pages need it: the text that a user sees, and the fields of forms.

/// The length from which a word of letters, digits, `-` and `_` is an id or a token.
const TOKEN: usize = 31;
/// The shapes of times, and what is shown instead. Nothing is shown instead of a time without its
/// time zone, which is typed.
const TIMES: [(&str, &str); 5] = [
    ("0000-00-00T00:00:00.000Z", "DATE"),
    ("0000-00-00T", ""),
    ("0000-00-00 00:00 UTC", "DATE"),
    ("0000-00-00", "DATE"),
    ("00:00 UTC", "TIME"),
];
/// The elements that begin and end a line.
const BLOCKS: &str = " body button dd details div dl dt fieldset footer form h1 h2 h3 header \
                      legend li main nav ol p section summary table tbody th thead tr ul ";

/// Returns the first element whose opening tag contains `mark`, such as `<main` or `id="count"`.
pub(crate) fn element<'a>(html: &'a str, mark: &str) -> Option<&'a str> {
    let at = html.find(mark)?;
    let begin = html.get(..=at)?.rfind('<')?;
    let rest = html.get(begin..)?;
    let (open, close) = (format!("<{}", name(rest)), format!("</{}>", name(rest)));
    let mut depth = 0_usize;
    for (at, _) in rest.match_indices('<') {
        let here = &rest[at..];
        if here.starts_with(&close) {
            depth -= 1;
        } else if here.starts_with(&open) && name(here) == name(rest) {
            depth += 1;
        }
        if depth == 0 {
            return rest.get(..at);
        }
    }
    None
}

/// Returns the name of the element that begins here.
fn name(tag: &str) -> &str {
    tag.trim_start_matches('<').split([' ', '\n', '>']).next().unwrap_or_default()
}

/// Returns the text that a user sees, in lines: `[value]` is a field, `(text)` a button, `✗` an
/// error, and `|` separates cells. Ids, tokens and times are replaced, see [`stable`].
pub(crate) fn text(html: &str) -> String {
    let mut shown = String::new();
    // The element whose content is not shown.
    let mut hidden = String::new();
    for piece in html.split('<') {
        let (tag, words) = piece.split_once('>').unwrap_or(("", piece));
        if hidden.is_empty() || hidden == name(tag) {
            hidden = hidden_until(tag);
            shown.push_str(&mark(tag));
        }
        if hidden.is_empty() {
            shown.push_str(&unescaped(words).replace('\n', " "));
        }
    }
    lines(&shown)
}

/// Returns the name of the closing tag up to which nothing is shown: of an icon, of what needs
/// scripts, or of an option that is not selected.
fn hidden_until(tag: &str) -> String {
    let decoration = tag.contains("aria-hidden=\"true\"") || tag.contains("js-only");
    let hidden = match name(tag) {
        "svg" | "script" => true,
        "option" => !tag.contains(" selected"),
        _ => decoration,
    };
    if hidden { format!("/{}", name(tag)) } else { String::new() }
}

/// Returns the text that stands for a tag.
fn mark(tag: &str) -> String {
    let error = tag.contains("\"wrong") || tag.contains("notice-bad");
    match name(tag).trim_start_matches('/') {
        "input" => field(tag),
        "label" if !tag.starts_with('/') => "\n".to_owned(),
        "button" if tag.starts_with('/') => ")\n".to_owned(),
        "button" => "\n(".to_owned(),
        "select" | "textarea" if tag.starts_with('/') => "]\n".to_owned(),
        "select" | "textarea" => " [".to_owned(),
        "a" | "span" | "time" if tag.starts_with('/') => String::new(),
        "span" if tag.contains(" block") => " / ".to_owned(),
        "a" | "span" | "time" => " ".to_owned(),
        "td" | "dd" | "th" if !tag.starts_with('/') => " | ".to_owned(),
        "td" | "dd" | "th" => String::new(),
        "dt" if tag.starts_with('/') => String::new(),
        _ if error => "\n✗ ".to_owned(),
        block if BLOCKS.contains(&format!(" {block} ")) => "\n".to_owned(),
        _ => String::new(),
    }
}

fn field(tag: &str) -> String {
    let value = attribute(tag, "value").unwrap_or_default();
    match attribute(tag, "type").as_deref() {
        Some("hidden") => String::new(),
        Some("checkbox" | "radio") if tag.contains(" checked") => "[x] ".to_owned(),
        Some("checkbox" | "radio") => "[ ] ".to_owned(),
        _ => format!(" [{value}]"),
    }
}

/// Removes empty lines and superfluous white space, and replaces ids and tokens.
fn lines(text: &str) -> String {
    let line = |line: &str| {
        let words = stable(&line.split_whitespace().collect::<Vec<_>>().join(" "));
        words
            .trim_matches(['|', ' '])
            .trim_start_matches("/ ")
            .replace("( ", "(")
            .replace(" )", ")")
    };
    let lines: Vec<_> = text.lines().map(line).filter(|l| !l.is_empty()).collect();
    lines.join("\n").replace("(\n", "(").replace("\n)", ")").replace("✗\n", "✗ ")
}

/// Returns a text with `…` for ids and tokens, and with `DATE` and `TIME`, which depend on the
/// engine: PostgreSQL has a clock of its own.
pub(crate) fn stable(text: &str) -> String {
    let in_token = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let parts = text.split_inclusive(|c| !in_token(c));
    let part = |part: &str| match part.trim_end_matches(|c| !in_token(c)) {
        token if token.len() >= TOKEN => part.replace(token, "…"),
        _ => part.to_owned(),
    };
    without_times(&parts.map(part).collect::<String>())
}

fn without_times(text: &str) -> String {
    let fits = |text: &str, shape: &str| {
        let same = |(b, s): (u8, u8)| b == s || s == b'0' && b.is_ascii_digit();
        text.len() >= shape.len() && text.bytes().zip(shape.bytes()).all(same)
    };
    let (mut shown, mut rest) = (String::new(), text);
    while let Some(c) = rest.chars().next() {
        let time = TIMES.iter().find(|(shape, _)| fits(rest, shape));
        let (length, word) = time.map_or((c.len_utf8(), ""), |(shape, word)| (shape.len(), *word));
        shown.push_str(if word.is_empty() { &rest[..length] } else { word });
        rest = &rest[length..];
    }
    shown
}

/// Returns the names and values that a browser submits with a form.
pub(crate) fn fields(form: &str) -> Vec<(String, String)> {
    let mut all = Vec::new();
    let mut select = String::new();
    for piece in form.split('<') {
        let (tag, words) = piece.split_once('>').unwrap_or(("", piece));
        let value = || attribute(tag, "value").unwrap_or_default();
        let is_choice = tag.contains("type=\"checkbox\"") || tag.contains("type=\"radio\"");
        match (name(tag), attribute(tag, "name")) {
            ("input", Some(_)) if is_choice && !tag.contains(" checked") => {}
            ("input", Some(field)) => all.push((field, value())),
            ("textarea", Some(field)) => all.push((field, unescaped(words))),
            ("select", Some(field)) => select = field,
            ("option", _) if tag.contains(" selected") => all.push((select.clone(), value())),
            _ => {}
        }
    }
    all
}

/// Returns the unescaped value of an attribute.
pub(crate) fn attribute(tag: &str, name: &str) -> Option<String> {
    let (_, rest) = tag.split_once(&format!(" {name}=\""))?;
    Some(unescaped(rest.split('"').next()?))
}

fn unescaped(html: &str) -> String {
    let entities =
        [("&#60;", "<"), ("&#62;", ">"), ("&#34;", "\""), ("&#39;", "'"), ("&#38;", "&")];
    entities.iter().fold(html.to_owned(), |text, (entity, sign)| text.replace(entity, sign))
}
