//! The kinds of value in the file: sizes, durations, networks, counts, each with one way to be written and its own words
//! for what is wrong. Knows no keys.
//!
//! The message of an error is its first line; what follows is advice.

use std::fmt::{self, Display, Formatter};
use std::net::IpAddr;
use std::str::FromStr;
use std::time::Duration;

use ipnet::IpNet;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

mod auto;
mod place;
mod ttl;

pub use auto::AutoOr;
pub use place::At;
pub use ttl::TtlTable;

/// A string with a grammar of its own, shared by the types below.
trait Text: FromStr<Err = String> {
    const EXPECTING: &'static str;

    /// What to write where a bare number stands.
    fn instead_of_number(number: i64) -> String;
}

struct TextVisitor<T>(std::marker::PhantomData<T>);

impl<T: Text> Visitor<'_> for TextVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(T::EXPECTING)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<T, E> {
        Err(E::custom(T::instead_of_number(number)))
    }
}

/// Serde and schema of a [`Text`] type, written as a string.
macro_rules! text_value {
    ($name:ident, $title:literal, $pattern:expr, [$($example:literal),+]) => {
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_any(TextVisitor::<Self>(std::marker::PhantomData))
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string", "description": $title, "pattern": $pattern, "examples": [$($example),+] })
            }
        }
    };
}

/// A number of bytes: `64MiB`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct ByteSize(pub u64);

impl ByteSize {
    pub const fn kib(count: u64) -> Self {
        Self(count << 10)
    }

    pub const fn mib(count: u64) -> Self {
        Self(count << 20)
    }

    const UNITS: [(&'static str, u64); 9] = [
        ("B", 1),
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
        ("TiB", 1 << 40),
        ("kB", 1_000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
        ("TB", 1_000_000_000_000),
    ];
}

impl Text for ByteSize {
    const EXPECTING: &'static str = "a size such as \"64MiB\"";

    fn instead_of_number(number: i64) -> String {
        let unit = if number == 0 { "" } else { "B" };
        format!("a size is written with its unit, in quotes\nwrite \"{number}{unit}\", or use KiB, MiB, GiB or TiB")
    }
}

impl FromStr for ByteSize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = |advice: &str| format!("`{}` is not a size\n{advice}", shown(text));
        if text == "0" {
            return Ok(Self(0));
        }
        let (digits, unit) = split_unit(text);
        if text.starts_with('-') {
            return Err(wrong("a size cannot be negative"));
        }
        let number: u64 = digits
            .parse()
            .map_err(|_| wrong("write a whole number and a unit, such as \"64MiB\""))?;
        if let Some((_, factor)) = Self::UNITS.iter().find(|(name, _)| *name == unit) {
            return number
                .checked_mul(*factor)
                .map(Self)
                .ok_or_else(|| wrong("it is larger than any disk"));
        }
        let likely = match unit.to_ascii_lowercase().as_str() {
            "k" | "kb" | "kib" => "KiB",
            "m" | "mb" | "mib" => "MiB",
            "g" | "gb" | "gib" => "GiB",
            "t" | "tb" | "tib" => "TiB",
            _ => return Err(wrong("the units are B, KiB, MiB, GiB and TiB")),
        };
        Err(wrong(&format!("write \"{number}{likely}\"")))
    }
}

impl Display for ByteSize {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self(bytes) = *self;
        if bytes == 0 {
            return f.write_str("0");
        }
        let binary = Self::UNITS.iter().take(5).rev();
        let unit = binary.into_iter().find(|(_, factor)| bytes.is_multiple_of(*factor));
        let (name, factor) = unit.copied().unwrap_or(("B", 1));
        write!(f, "{}{name}", bytes / factor)
    }
}

text_value!(
    ByteSize,
    "Bytes, with a unit.",
    r"^(0|[0-9]+(B|KiB|MiB|GiB|TiB|kB|MB|GB|TB))$",
    ["64MiB", "10GiB", "0"]
);

/// A span of time: `10m`, `1h30m`, `500ms`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct TimeSpan(pub Duration);

impl TimeSpan {
    pub const fn secs(secs: u64) -> Self {
        Self(Duration::from_secs(secs))
    }

    /// Longest first. A month is missing, since it has no length; a year has 365 days, as in nginx.
    const UNITS: [(&'static str, u64); 7] = [
        ("y", 31_536_000_000),
        ("w", 604_800_000),
        ("d", 86_400_000),
        ("h", 3_600_000),
        ("m", 60_000),
        ("s", 1_000),
        ("ms", 1),
    ];
}

impl Text for TimeSpan {
    const EXPECTING: &'static str = "a duration such as \"10m\"";

    fn instead_of_number(number: i64) -> String {
        if number < 0 {
            return "a duration cannot be negative\nwrite a number and a unit, such as \"10m\"".to_owned();
        }
        format!("a duration is written with its unit, in quotes\nwrite \"{number}s\", or use ms, m, h or d")
    }
}

impl FromStr for TimeSpan {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = |advice: &str| format!("`{}` is not a duration\n{advice}", shown(text));
        if text == "0" {
            return Ok(Self(Duration::ZERO));
        }
        if text.starts_with('-') {
            return Err(wrong("a duration cannot be negative"));
        }
        let mut rest = text;
        let mut total_ms: u64 = 0;
        let mut longest_allowed = u64::MAX;
        while !rest.is_empty() {
            let (digits, tail) = split_unit(rest);
            let unit_len = tail.find(|c: char| c.is_ascii_digit()).unwrap_or(tail.len());
            let (unit, tail) = tail.split_at(unit_len);
            let number: u64 = digits
                .parse()
                .map_err(|_| wrong("write a whole number and a unit, such as \"10m\""))?;
            let Some((_, factor)) = Self::UNITS.iter().find(|(name, _)| *name == unit) else {
                return Err(wrong(match unit {
                    "" => "a unit is missing: ms, s, m, h, d, w or y",
                    "M" => "a month has no fixed length: write days, and minutes as \"m\"",
                    _ => "the units are ms, s, m, h, d, w and y",
                }));
            };
            if *factor >= longest_allowed {
                return Err(wrong("larger units come first, each once, as in \"1h30m\""));
            }
            longest_allowed = *factor;
            total_ms = number
                .checked_mul(*factor)
                .and_then(|ms| ms.checked_add(total_ms))
                .ok_or_else(|| wrong("it is longer than time lasts"))?;
            rest = tail;
        }
        if text.is_empty() {
            return Err(wrong("write a whole number and a unit, such as \"10m\""));
        }
        Ok(Self(Duration::from_millis(total_ms)))
    }
}

impl Display for TimeSpan {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let ms = u64::try_from(self.0.as_millis()).unwrap_or(u64::MAX);
        if ms == 0 {
            return f.write_str("0s");
        }
        // Days are the largest unit printed: "14d" is read more easily than "2w".
        let units = Self::UNITS.iter().skip(2);
        let unit = units.into_iter().find(|(_, factor)| ms.is_multiple_of(*factor));
        let (name, factor) = unit.copied().unwrap_or(("ms", 1));
        write!(f, "{}{name}", ms / factor)
    }
}

text_value!(
    TimeSpan,
    "A duration, with units.",
    r"^(0|([0-9]+(ms|s|m|h|d|w|y))+)$",
    ["500ms", "10m", "1h30m", "1d"]
);

/// A network, `10.0.0.0/8`, or one address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cidr(pub IpNet);

impl Text for Cidr {
    const EXPECTING: &'static str = "a network such as \"10.0.0.0/8\"";

    fn instead_of_number(_: i64) -> String {
        "a network is a string\nwrite an address and a prefix length, such as \"10.0.0.0/8\"".to_owned()
    }
}

impl FromStr for Cidr {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(address) = text.parse::<IpAddr>() {
            return Ok(Self(address.into()));
        }
        let net: IpNet = text.parse().map_err(|_| {
            let shown = shown(text);
            format!("`{shown}` is not a network\nwrite an address and a prefix length, such as \"10.0.0.0/8\"")
        })?;
        if net.addr() != net.network() {
            let trunc = net.trunc();
            return Err(format!("`{net}` has address bits beyond its prefix\nwrite \"{trunc}\""));
        }
        Ok(Self(net))
    }
}

impl Display for Cidr {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

text_value!(
    Cidr,
    "A network, or one address.",
    "^[0-9a-fA-F:.]+(/[0-9]{1,3})?$",
    ["127.0.0.1/32", "10.0.0.0/8", "::1"]
);

/// Digits and what follows them.
fn split_unit(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

/// A value of the file as messages quote it: short, and on one line.
pub(crate) fn shown(text: &str) -> String {
    const LENGTH_MAX: usize = 60;
    let mut out: String = text.chars().take(LENGTH_MAX).flat_map(char::escape_debug).collect();
    // Quotes need no backslash between backticks.
    out = out.replace("\\\"", "\"").replace("\\'", "'");
    if text.chars().nth(LENGTH_MAX).is_some() {
        out.push('…');
    }
    out
}

#[cfg(test)]
mod tests;
