//! The table of lifetimes. Its keys are statuses, which are checked later, with those of the other rules.

use std::collections::BTreeMap;
use std::fmt::{self, Formatter};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{At, TimeSpan};

/// Lifetimes by status, with `any` for the rest: `{ 200 = "1d", any = "1m" }`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TtlTable(pub Vec<(At<String>, At<TimeSpan>)>);

impl<'de> Deserialize<'de> for TtlTable {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TableVisitor;

        impl<'de> Visitor<'de> for TableVisitor {
            type Value = TtlTable;

            fn expecting(&self, f: &mut Formatter<'_>) -> fmt::Result {
                f.write_str("a table from status to duration, such as { 200 = \"1d\", 404 = \"1m\" }")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<TtlTable, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(TtlTable(entries))
            }
        }

        deserializer.deserialize_map(TableVisitor)
    }
}

impl Serialize for TtlTable {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let sorted: BTreeMap<&str, TimeSpan> = self.0.iter().map(|(key, ttl)| (key.as_str(), **ttl)).collect();
        sorted.serialize(serializer)
    }
}

impl JsonSchema for TtlTable {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "TtlTable".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let ttl = generator.subschema_for::<TimeSpan>();
        json_schema!({
            "type": "object",
            "patternProperties": { "^([2-5][0-9][0-9]|any)$": ttl },
            "additionalProperties": false,
        })
    }
}
