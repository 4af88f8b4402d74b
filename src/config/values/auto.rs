//! Numbers that the appliance may choose itself.

use std::fmt::{self, Formatter};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::shown;

/// A number, or `"auto"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AutoOr {
    #[default]
    Auto,
    Count(u64),
}

impl<'de> Deserialize<'de> for AutoOr {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct AutoVisitor;

        impl Visitor<'_> for AutoVisitor {
            type Value = AutoOr;

            fn expecting(&self, f: &mut Formatter<'_>) -> fmt::Result {
                f.write_str("a whole number or \"auto\"")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<AutoOr, E> {
                if text == "auto" {
                    return Ok(AutoOr::Auto);
                }
                Err(E::custom(format!(
                    "`{}` is not a number\nwrite a number without quotes, or \"auto\"",
                    shown(text)
                )))
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<AutoOr, E> {
                let count = u64::try_from(number);
                count
                    .map(AutoOr::Count)
                    .map_err(|_| E::custom("the number cannot be negative\nwrite a number above 0, or \"auto\""))
            }
        }

        deserializer.deserialize_any(AutoVisitor)
    }
}

impl Serialize for AutoOr {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Auto => serializer.serialize_str("auto"),
            Self::Count(count) => serializer.serialize_u64(*count),
        }
    }
}

impl JsonSchema for AutoOr {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "AutoOrCount".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [{ "type": "string", "const": "auto" }, { "type": "integer", "minimum": 1 }] })
    }
}
