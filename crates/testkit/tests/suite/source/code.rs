//! Production code: a source file without comments, literals and tests.

/// Returns the source with comments, literals, and items under `#[cfg(test)]` replaced by spaces. Lines and
/// columns stay the same.
pub(crate) fn production_code(source: &str) -> String {
    let mut code: Vec<char> = source.chars().collect();
    blank_literals(&mut code);
    blank_tests(&mut code);
    code.into_iter().collect()
}

fn blank(code: &mut [char], from: usize, to: usize) {
    let end = to.min(code.len());
    for character in &mut code[from..end] {
        if *character != '\n' {
            *character = ' ';
        }
    }
}

pub(super) fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

fn starts_with(code: &[char], at: usize, text: &str) -> bool {
    text.chars().enumerate().all(|(offset, expected)| code.get(at + offset) == Some(&expected))
}

fn blank_literals(code: &mut [char]) {
    let mut at = 0;
    while at < code.len() {
        let end = if starts_with(code, at, "//") {
            (at..code.len()).find(|place| code[*place] == '\n').unwrap_or(code.len())
        } else if starts_with(code, at, "/*") {
            block_comment_end(code, at)
        } else if let Some(end) = raw_string_end(code, at) {
            end
        } else if code[at] == '"' {
            quoted_end(code, at, '"')
        } else if code[at] == '\'' && is_character(code, at) {
            quoted_end(code, at, '\'')
        } else {
            at += 1;
            continue;
        };
        blank(code, at, end);
        at = end;
    }
}

fn block_comment_end(code: &[char], start: usize) -> usize {
    let (mut depth, mut at) = (0, start);
    while at < code.len() {
        if starts_with(code, at, "/*") {
            depth += 1;
            at += 2;
        } else if starts_with(code, at, "*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    at
}

/// The end of the raw string whose `r` is here, if there is one.
fn raw_string_end(code: &[char], at: usize) -> Option<usize> {
    let is_prefix = code[at] == 'r' && (at == 0 || !is_word(code[at - 1]) || is_byte_prefix(code, at - 1));
    if !is_prefix {
        return None;
    }
    let hashes = code[at + 1..].iter().take_while(|character| **character == '#').count();
    let quote = at + 1 + hashes;
    if code.get(quote) != Some(&'"') {
        return None;
    }
    let closing: String = std::iter::once('"').chain(std::iter::repeat_n('#', hashes)).collect();
    let end = (quote + 1..code.len()).find(|place| starts_with(code, *place, &closing));
    Some(end.map_or(code.len(), |end| end + closing.len()))
}

fn is_byte_prefix(code: &[char], at: usize) -> bool {
    matches!(code[at], 'b' | 'c') && (at == 0 || !is_word(code[at - 1]))
}

fn quoted_end(code: &[char], start: usize, quote: char) -> usize {
    let mut at = start + 1;
    while at < code.len() {
        match code[at] {
            '\\' => at += 2,
            character if character == quote => return at + 1,
            _ => at += 1,
        }
    }
    at
}

/// Whether a quote starts a character literal and not a lifetime.
fn is_character(code: &[char], at: usize) -> bool {
    code.get(at + 1) == Some(&'\\') || code.get(at + 2) == Some(&'\'')
}

/// Blanks every item under an attribute that limits it to tests.
fn blank_tests(code: &mut [char]) {
    let mut at = 0;
    while at < code.len() {
        if !starts_with(code, at, "#[") {
            at += 1;
            continue;
        }
        let end = group_end(code, at + 1);
        let attribute: String = code[at..end].iter().filter(|character| !character.is_whitespace()).collect();
        let all = attribute.strip_prefix("#[cfg(all(").unwrap_or_default();
        let is_test = attribute == "#[cfg(test)]" || all.starts_with("test,") || all.contains(",test");
        if is_test {
            let end = item_end(code, end);
            blank(code, at, end);
            at = end;
        } else {
            at = end;
        }
    }
}

/// The end of the group that opens here.
pub(super) fn group_end(code: &[char], open: usize) -> usize {
    let mut depth = 0;
    for (at, character) in code.iter().enumerate().skip(open) {
        match character {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
    }
    code.len()
}

/// The end of an item: of its block, or its semicolon. The braces of an import are not a block.
fn item_end(code: &[char], start: usize) -> usize {
    let mut at = start;
    let mut imports = false;
    while at < code.len() {
        match code[at] {
            ';' => return at + 1,
            '{' if !imports => return group_end(code, at),
            '(' | '[' | '{' => at = group_end(code, at),
            character if is_word(character) => {
                let end = (at..code.len()).find(|place| !is_word(code[*place])).unwrap_or(code.len());
                imports |= code[at..end].iter().copied().eq("use".chars());
                at = end;
            }
            _ => at += 1,
        }
    }
    at
}
