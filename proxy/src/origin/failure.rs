//! How a fetch fails, as data: whose fault it was, and whether trying elsewhere could do harm.

use std::error::Error;

/// Who broke it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    Client,
    Origin,
    /// Our own limits.
    Internal,
}

/// Whether the request may be sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Retry {
    /// The origin may have acted on it, or has answered.
    Never,
    /// Only since the connection was an old one that the origin may have closed meanwhile; that retry has been used up
    /// where a caller sees this.
    IfReused,
    /// Nothing of it reached an origin.
    Safe,
}

/// Why there is no usable answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum FailureKind {
    /// The name has no address, or could not be looked up.
    Resolve,
    ConnectRefused,
    ConnectTimeout,
    /// Any other way in which no connection came about (unreachable, out of descriptors).
    ConnectFailed,
    /// At the connection limit, with as many waiting as may wait.
    QueueFull,
    /// Waited for a connection until the connect deadline.
    QueueTimeout,
    /// Closed or reset before the first byte of an answer.
    ClosedBeforeResponse,
    /// The origin took no more of the request.
    SendTimeout,
    FirstByteTimeout,
    /// Broke the syntax or a limit of HTTP/1, or answered what was not asked.
    MalformedResponse,
    /// The answer ended before its framing said so.
    Truncated,
    BetweenBytesTimeout,
    TotalTimeout,
    /// 101 without a matching request.
    UnexpectedSwitching,
    /// The request's body broke off on the client's side.
    RequestBody,
}

impl FailureKind {
    pub const ALL: [Self; 15] = [
        Self::Resolve,
        Self::ConnectRefused,
        Self::ConnectTimeout,
        Self::ConnectFailed,
        Self::QueueFull,
        Self::QueueTimeout,
        Self::ClosedBeforeResponse,
        Self::SendTimeout,
        Self::FirstByteTimeout,
        Self::MalformedResponse,
        Self::Truncated,
        Self::BetweenBytesTimeout,
        Self::TotalTimeout,
        Self::UnexpectedSwitching,
        Self::RequestBody,
    ];

    /// For counters, logs and `detail` parameters.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Resolve => "resolve",
            Self::ConnectRefused => "connect-refused",
            Self::ConnectTimeout => "connect-timeout",
            Self::ConnectFailed => "connect-failed",
            Self::QueueFull => "queue-full",
            Self::QueueTimeout => "queue-timeout",
            Self::ClosedBeforeResponse => "closed-before-response",
            Self::SendTimeout => "send-timeout",
            Self::FirstByteTimeout => "first-byte-timeout",
            Self::MalformedResponse => "malformed-response",
            Self::Truncated => "truncated",
            Self::BetweenBytesTimeout => "between-bytes-timeout",
            Self::TotalTimeout => "total-timeout",
            Self::UnexpectedSwitching => "unexpected-switching",
            Self::RequestBody => "request-body",
        }
    }

    #[must_use]
    pub const fn side(self) -> Side {
        match self {
            Self::QueueFull | Self::QueueTimeout => Side::Internal,
            Self::RequestBody => Side::Client,
            _ => Side::Origin,
        }
    }

    /// What the client is told where nothing better is stored.
    #[must_use]
    pub const fn status(self) -> u16 {
        match self {
            Self::RequestBody => 400,
            Self::QueueFull | Self::QueueTimeout => 503,
            Self::ConnectTimeout
            | Self::SendTimeout
            | Self::FirstByteTimeout
            | Self::BetweenBytesTimeout
            | Self::TotalTimeout => 504,
            Self::Resolve
            | Self::ConnectRefused
            | Self::ConnectFailed
            | Self::ClosedBeforeResponse
            | Self::MalformedResponse
            | Self::Truncated
            | Self::UnexpectedSwitching => 502,
        }
    }

    /// The origin was not reached, or gave no answer in time: what `stale.if_unreachable` is about (RFC 9111 section
    /// 4.2.4). An answer that came and was bad is an error like a 5xx, which `stale.if_error` is about.
    #[must_use]
    pub const fn is_unreachable(self) -> bool {
        matches!(
            self,
            Self::Resolve
                | Self::ConnectRefused
                | Self::ConnectTimeout
                | Self::ConnectFailed
                | Self::QueueFull
                | Self::QueueTimeout
                | Self::ClosedBeforeResponse
                | Self::SendTimeout
                | Self::FirstByteTimeout
                | Self::TotalTimeout
        )
    }

    const fn retry(self) -> Retry {
        match self {
            Self::Resolve
            | Self::ConnectRefused
            | Self::ConnectTimeout
            | Self::ConnectFailed
            | Self::QueueFull
            | Self::QueueTimeout => Retry::Safe,
            Self::ClosedBeforeResponse => Retry::IfReused,
            _ => Retry::Never,
        }
    }
}

#[derive(Debug, thiserror::Error)]
#[error("origin failed: {}", kind.name())]
pub struct FetchError {
    pub side: Side,
    pub retry: Retry,
    pub kind: FailureKind,
    #[source]
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl FetchError {
    #[must_use]
    pub fn new(kind: FailureKind) -> Self {
        Self {
            side: kind.side(),
            retry: kind.retry(),
            kind,
            source: None,
        }
    }

    pub(super) fn caused(kind: FailureKind, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self {
            source: Some(source.into()),
            ..Self::new(kind)
        }
    }

    /// 502, 503 or 504; 400 where the client broke off its own request.
    #[must_use]
    pub const fn status(&self) -> u16 {
        self.kind.status()
    }
}

impl From<FailureKind> for FetchError {
    fn from(kind: FailureKind) -> Self {
        Self::new(kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_its_place_its_name_and_a_status() {
        for (index, kind) in FailureKind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, index);
            assert_eq!(
                FailureKind::ALL
                    .iter()
                    .filter(|other| other.name() == kind.name())
                    .count(),
                1
            );
            assert!(matches!(kind.status(), 400 | 502..=504));
        }
    }
}
