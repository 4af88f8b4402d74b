//! Field sections: one strict reading for heads and trailers. `httparse` does the work; what it lets pass (bare LF) has been refused
//! by whoever cut the section, and why it refuses is found out here, off the hot path.

use smallvec::SmallVec;

use super::reject::RejectReason;

/// Room for the field lines of one head. Browsers send 10 to 20; beyond 32 it goes to the heap, up to the limit on lines.
pub type FieldSlots<'b> = SmallVec<[httparse::Header<'b>; 32]>;

static TCHAR: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0_u8;
    while byte < 128 {
        // In range: the table has an entry for every u8.
        #[expect(clippy::indexing_slicing, reason = "evaluated by the compiler")]
        {
            table[byte as usize] = byte.is_ascii_alphanumeric()
                || matches!(
                    byte,
                    b'!' | b'#'
                        | b'$'
                        | b'%'
                        | b'&'
                        | b'\''
                        | b'*'
                        | b'+'
                        | b'-'
                        | b'.'
                        | b'^'
                        | b'_'
                        | b'`'
                        | b'|'
                        | b'~'
                );
        }
        byte += 1;
    }
    table
};

/// A byte of a token (RFC 9110 section 5.6.2).
#[must_use]
pub fn is_tchar(byte: u8) -> bool {
    TCHAR.get(usize::from(byte)).copied().unwrap_or(false)
}

/// A byte that a field value may hold: HTAB, SP, VCHAR, obs-text (RFC 9110 section 5.5).
#[must_use]
pub fn is_value_byte(byte: u8) -> bool {
    byte == b'\t' || (byte >= b' ' && byte != 0x7f)
}

/// Without the optional white space around it.
#[must_use]
pub fn trim_ows(mut value: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = value {
        value = rest;
    }
    value
}

/// Reads `section`, which is `count` lines and the empty line, each known to end in CRLF.
pub(super) fn parse<'b>(section: &'b [u8], count: usize, slots: &mut FieldSlots<'b>) -> Result<(), RejectReason> {
    slots.clear();
    slots.resize(count, httparse::EMPTY_HEADER);
    match httparse::parse_headers(section, slots) {
        Ok(httparse::Status::Complete((used, lines))) if used == section.len() && lines.len() == count => Ok(()),
        _ => Err(diagnose(section)),
    }
}

/// The first fault of a section that was refused.
#[cold]
fn diagnose(section: &[u8]) -> RejectReason {
    section
        .split(|byte| *byte == b'\n')
        .filter_map(line_fault)
        .next()
        .unwrap_or(RejectReason::BadName)
}

fn line_fault(line: &[u8]) -> Option<RejectReason> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if let Some(reason) = control_fault(line) {
        return Some(reason);
    }
    let before_colon = match line.iter().position(|byte| *byte == b':') {
        _ if line.is_empty() => return None,
        _ if line.starts_with(b" ") || line.starts_with(b"\t") => return Some(RejectReason::ObsFold),
        None => return Some(RejectReason::NoColon),
        Some(at) => line.get(..at).unwrap_or_default(),
    };
    match before_colon {
        [] => Some(RejectReason::EmptyName),
        [.., b' ' | b'\t'] => Some(RejectReason::SpaceBeforeColon),
        name if name.iter().all(|byte| is_tchar(*byte)) => None,
        _ => Some(RejectReason::BadName),
    }
}

/// The first control byte of a line without its CRLF.
pub(super) fn control_fault(line: &[u8]) -> Option<RejectReason> {
    match line.iter().find(|byte| !is_value_byte(**byte))? {
        b'\r' => Some(RejectReason::BareCr),
        _ => Some(RejectReason::ControlByte),
    }
}
