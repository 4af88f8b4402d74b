//! Why a request was refused, as data: one reason, one status, one name for the counters.

use std::fmt;

/// A request that is not answered by anything behind this front. The connection must be closed after the answer: where the next
/// request begins is no longer known (RFC 9112 section 9.6 and 11.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reject {
    pub status: u16,
    pub reason: RejectReason,
}

impl From<RejectReason> for Reject {
    fn from(reason: RejectReason) -> Self {
        Self {
            status: reason.status(),
            reason,
        }
    }
}

impl fmt::Display for Reject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.status, self.reason.name())
    }
}

impl std::error::Error for Reject {}

macro_rules! reasons {
    ($($(#[$doc:meta])* $variant:ident => $status:literal, $name:literal;)*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum RejectReason {
            $($(#[$doc])* $variant,)*
        }

        impl RejectReason {
            /// In the order of their numbers: `ALL[reason as usize] == reason`.
            pub const ALL: [Self; [$($status),*].len()] = [$(Self::$variant),*];

            #[must_use]
            pub const fn status(self) -> u16 {
                match self {
                    $(Self::$variant => $status,)*
                }
            }

            /// Its name in counters and logs.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }
    };
}

reasons! {
    /// LF without CR. RFC 9112 section 2.2 lets a recipient take it as a line end; others don't, so it is refused.
    BareLf => 400, "bare-lf";
    /// CR without LF.
    BareCr => 400, "bare-cr";
    /// NUL or another control byte.
    ControlByte => 400, "control-byte";
    /// A line that begins with white space (RFC 9112 section 5.2, and 2.2 for the first one).
    ObsFold => 400, "obs-fold";
    /// RFC 9112 section 5.1.
    SpaceBeforeColon => 400, "space-before-colon";
    EmptyName => 400, "empty-name";
    /// A field name with a byte that no token may have.
    BadName => 400, "bad-name";
    NoColon => 400, "no-colon";
    BadRequestLine => 400, "bad-request-line";
    BadMethod => 400, "bad-method";
    /// RFC 9112 section 3: a method longer than any that is implemented.
    MethodTooLong => 501, "method-too-long";
    BadTarget => 400, "bad-target";
    BadVersion => 400, "bad-version";
    UnsupportedVersion => 505, "unsupported-version";
    MissingHost => 400, "missing-host";
    DuplicateHost => 400, "duplicate-host";
    BadHost => 400, "bad-host";
    HeadTooLarge => 431, "head-too-large";
    TargetTooLong => 414, "target-too-long";
    TooManyHeaders => 431, "too-many-headers";
    BadContentLength => 400, "bad-content-length";
    DuplicateContentLength => 400, "duplicate-content-length";
    /// Content-Length beside Transfer-Encoding (RFC 9112 section 6.3, rule 3).
    LengthAndChunked => 400, "length-and-chunked";
    /// Anything but `chunked` where chunked is not the last coding, or more than one line.
    BadTransferEncoding => 400, "bad-transfer-encoding";
    /// Another coding below chunked (RFC 9112 section 6.1).
    UnsupportedTransferEncoding => 501, "unsupported-transfer-encoding";
    /// RFC 9112 section 6.1: the framing of such a message is faulty.
    TransferEncodingInHttp10 => 400, "transfer-encoding-in-http10";
    UnknownExpectation => 417, "unknown-expectation";
    BadChunk => 400, "bad-chunk";
    ChunkExtensionsTooLarge => 400, "chunk-extensions-too-large";
    TrailersTooLarge => 431, "trailers-too-large";
    BodyTooLarge => 413, "body-too-large";
}
