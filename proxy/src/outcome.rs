//! How a request ended, as data. This one value feeds `Cache-Status`, `X-Cache-Status`, the access log and the counters.

use larder_semantics::Refusal;
use larder_storage::Tier;

/// nginx's status words (`$upstream_cache_status`), plus SCARCE, which nginx never counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum CacheStatus {
    Miss,
    Bypass,
    Expired,
    Stale,
    Updating,
    Revalidated,
    Hit,
    Scarce,
}

impl CacheStatus {
    pub const ALL: [Self; 8] = [
        Self::Miss,
        Self::Bypass,
        Self::Expired,
        Self::Stale,
        Self::Updating,
        Self::Revalidated,
        Self::Hit,
        Self::Scarce,
    ];

    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Miss => "MISS",
            Self::Bypass => "BYPASS",
            Self::Expired => "EXPIRED",
            Self::Stale => "STALE",
            Self::Updating => "UPDATING",
            Self::Revalidated => "REVALIDATED",
            Self::Hit => "HIT",
            Self::Scarce => "SCARCE",
        }
    }
}

/// Why the request went to the origin: the `fwd` parameter of RFC 9211, with the detail that it leaves open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Forward {
    /// Nothing is stored under the key.
    UriMiss,
    /// Something is stored under the key, for other values of the fields in Vary.
    VaryMiss,
    /// What is stored is no longer fresh.
    Stale,
    /// A `bypass` condition of the rule matched.
    Rule,
    /// The request's own directives ask for it (`no-cache`, where the rule honours it).
    Request,
    /// The method is neither GET nor HEAD.
    Method,
    /// A GET or HEAD with a body.
    Body,
    /// The request carries Authorization (RFC 9111 section 3.5).
    Authorization,
    /// A protocol upgrade.
    Upgrade,
}

impl Forward {
    pub const ALL: [Self; 9] = [
        Self::UriMiss,
        Self::VaryMiss,
        Self::Stale,
        Self::Rule,
        Self::Request,
        Self::Method,
        Self::Body,
        Self::Authorization,
        Self::Upgrade,
    ];

    /// The `fwd` token of RFC 9211 section 2.2.
    #[must_use]
    pub const fn token(self) -> &'static str {
        match self {
            Self::UriMiss => "uri-miss",
            Self::VaryMiss => "vary-miss",
            Self::Stale => "stale",
            Self::Request => "request",
            Self::Method => "method",
            Self::Rule | Self::Body | Self::Authorization | Self::Upgrade => "bypass",
        }
    }

    /// A name of its own for counters and `detail`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::UriMiss => "uri-miss",
            Self::VaryMiss => "vary-miss",
            Self::Stale => "stale",
            Self::Rule => "rule",
            Self::Request => "request",
            Self::Method => "method",
            Self::Body => "request-body",
            Self::Authorization => "authorization",
            Self::Upgrade => "upgrade",
        }
    }
}

/// Why an answer of the origin was not stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NotStored {
    /// RFC 9111 or the rule's policy forbids it.
    Refused(Refusal),
    /// A `no_store` condition of the rule matched.
    Rule,
    /// The request could not fill the cache (method, body, range, upgrade, authorization).
    Request,
    /// Larger than the largest object a tier takes.
    TooLarge,
    /// The memory set aside for fills in progress is used up.
    FillMemory,
    /// The origin's body ended early or was malformed.
    Truncated,
    /// Every client left before it was worth finishing.
    Abandoned,
    /// A purge came between the request to the origin and its answer.
    Purged,
    /// No usable answer came from the origin.
    OriginFailed,
    /// A request that began later has been answered and stored meanwhile.
    Superseded,
    /// The memory tier found no room for it.
    NoRoom,
    /// There is no tier to store it in.
    NoTier,
    /// Its body ended with the connection: an origin that broke down would look the same.
    CloseDelimited,
    /// The disk that it belongs on had too much to write already, and memory would not take it.
    DiskBusy,
    /// The disk that it belongs on is in trouble, and memory would not take it.
    DiskUnavailable,
    /// It has not been asked for often enough yet (`min_uses`).
    MinUses,
}

impl NotStored {
    /// How many there are: the size of an array indexed by [`Self::index`].
    pub const COUNT: usize = 15 + Refusal::ALL.len();

    #[must_use]
    pub const fn index(self) -> usize {
        match self {
            Self::Rule => 0,
            Self::Request => 1,
            Self::TooLarge => 2,
            Self::FillMemory => 3,
            Self::Truncated => 4,
            Self::Abandoned => 5,
            Self::Purged => 6,
            Self::OriginFailed => 7,
            Self::Superseded => 8,
            Self::NoRoom => 9,
            Self::NoTier => 10,
            Self::CloseDelimited => 11,
            Self::DiskBusy => 12,
            Self::DiskUnavailable => 13,
            Self::MinUses => 14,
            Self::Refused(refusal) => 15 + refusal as usize,
        }
    }

    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rule => "rule",
            Self::Request => "request",
            Self::TooLarge => "too-large",
            Self::FillMemory => "fill-memory",
            Self::Truncated => "truncated",
            Self::Abandoned => "abandoned",
            Self::Purged => "purged",
            Self::OriginFailed => "origin-failed",
            Self::Superseded => "superseded",
            Self::NoRoom => "no-room",
            Self::NoTier => "no-tier",
            Self::CloseDelimited => "close-delimited",
            Self::DiskBusy => "disk-busy",
            Self::DiskUnavailable => "disk-unavailable",
            Self::MinUses => "min-uses",
            Self::Refused(refusal) => refusal.name(),
        }
    }

    /// Every reason, in the order of [`Self::index`].
    pub fn all() -> impl Iterator<Item = Self> {
        [
            Self::Rule,
            Self::Request,
            Self::TooLarge,
            Self::FillMemory,
            Self::Truncated,
            Self::Abandoned,
            Self::Purged,
            Self::OriginFailed,
            Self::Superseded,
            Self::NoRoom,
            Self::NoTier,
            Self::CloseDelimited,
            Self::DiskBusy,
            Self::DiskUnavailable,
            Self::MinUses,
        ]
        .into_iter()
        .chain(Refusal::ALL.into_iter().map(Self::Refused))
    }
}

/// What became of the answer where the origin was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stored {
    Yes,
    No(NotStored),
}

/// The name of a tier in the log.
#[must_use]
pub const fn tier_name(tier: Tier) -> &'static str {
    match tier {
        Tier::Memory => "memory",
        Tier::Disk => "disk",
    }
}

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome {
    /// `None` where the cache had no part in it: refused, not routed, answered by Larder itself.
    pub cache: Option<CacheStatus>,
    /// Why the origin was asked; `None` on a hit.
    pub forward: Option<Forward>,
    /// The origin's status where it was asked and answered.
    pub forward_status: Option<u16>,
    /// Whether the answer was stored, where that is known when the head is sent.
    pub stored: Option<Stored>,
    /// The request waited for another one's fill (RFC 9211 `collapsed`).
    pub collapsed: bool,
    /// Freshness left, in seconds; negative when stale (RFC 9211 `ttl`).
    pub ttl_secs: Option<i64>,
    /// Where it was found; `None` unless it is a hit.
    pub tier: Option<Tier>,
}

impl Outcome {
    /// Answered without the cache.
    pub const NONE: Self = Self {
        cache: None,
        forward: None,
        forward_status: None,
        stored: None,
        collapsed: false,
        ttl_secs: None,
        tier: None,
    };
}
