//! What clients sent, made safe for a line: it can neither end a field nor the line.

const UPPER: &[u8; 16] = b"0123456789ABCDEF";

/// As nginx does: `"`, `\`, control and non-ASCII bytes become `\xHH`.
pub(super) fn append_hex_escaped(out: &mut Vec<u8>, bytes: &[u8]) {
    let mut rest = bytes;
    while let Some(at) = rest.iter().position(|&byte| !is_plain(byte)) {
        let (plain, tail) = rest.split_at_checked(at).unwrap_or((rest, b""));
        out.extend_from_slice(plain);
        let Some((&byte, tail)) = tail.split_first() else {
            return;
        };
        out.extend_from_slice(b"\\x");
        append_hex(out, byte);
        rest = tail;
    }
    out.extend_from_slice(rest);
}

/// The inside of a JSON string (RFC 8259 section 7). Bytes that are not UTF-8 become U+FFFD, since JSON has no other way to
/// hold them.
pub(super) fn append_json_escaped(out: &mut Vec<u8>, bytes: &[u8]) {
    // Nearly all values are plain: they are copied after one look.
    if bytes.iter().all(|&byte| is_plain(byte)) {
        out.extend_from_slice(bytes);
        return;
    }
    for chunk in bytes.utf8_chunks() {
        append_json_escaped_text(out, chunk.valid().as_bytes());
        if !chunk.invalid().is_empty() {
            out.extend_from_slice("\u{fffd}".as_bytes());
        }
    }
}

fn append_json_escaped_text(out: &mut Vec<u8>, text: &[u8]) {
    for &byte in text {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0..0x20 | 0x7f => {
                out.extend_from_slice(b"\\u00");
                append_hex(out, byte);
            }
            _ => out.push(byte),
        }
    }
}

/// Stands for itself in both formats.
const fn is_plain(byte: u8) -> bool {
    matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\'
}

fn append_hex(out: &mut Vec<u8>, byte: u8) {
    for digit in [byte >> 4, byte & 0xf] {
        out.extend(UPPER.get(usize::from(digit)));
    }
}
