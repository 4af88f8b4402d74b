//! The JSON Schema of the file, for editors and forms. It comes from the structs that read the file, so it can't differ from them.

use schemars::SchemaGenerator;
use schemars::transform::{Transform, transform_subschemas};
use serde_json::{Value, json};

use super::file::File;

/// Keys without which a table is refused. To serde nothing is required, since a missing key would hide every other fault.
const REQUIRED: [(&str, &[&str]); 9] = [
    ("", &["listener", "upstream", "vhost"]),
    ("/$defs/AccessLog", &["path"]),
    ("/$defs/Certificate", &["cert", "key"]),
    ("/$defs/Disk", &["path", "max_size"]),
    ("/$defs/Listener", &["address"]),
    ("/$defs/Purge", &["allow"]),
    ("/$defs/Upstream", &["name", "servers"]),
    ("/$defs/UpstreamServer", &["address"]),
    ("/$defs/Vhost", &["name", "upstream"]),
];

pub fn schema() -> Value {
    let mut schema = SchemaGenerator::default().into_root_schema_for::<File>();
    WithoutNull.transform(&mut schema);
    let mut schema = schema.to_value();
    for (pointer, keys) in REQUIRED {
        if let Some(table) = schema.pointer_mut(pointer).and_then(Value::as_object_mut) {
            table.insert("required".to_owned(), json!(keys));
        }
    }
    schema
}

/// As `larder schema` prints it.
pub fn schema_text() -> String {
    format!("{:#}\n", schema())
}

/// TOML has no null: what may be left out is left out.
struct WithoutNull;

impl Transform for WithoutNull {
    fn transform(&mut self, schema: &mut schemars::Schema) {
        transform_subschemas(self, schema);
        let Some(fields) = schema.as_object_mut() else { return };
        if let Some(Value::Array(kinds)) = fields.get_mut("type") {
            kinds.retain(|kind| kind != "null");
            if let [only] = kinds.as_slice() {
                let only = only.clone();
                fields.insert("type".to_owned(), only);
            }
        }
        if fields.get("default") == Some(&Value::Null) {
            fields.remove("default");
        }
        let Some(Value::Array(branches)) = fields.get_mut("anyOf") else {
            return;
        };
        branches.retain(|branch| branch.get("type").and_then(Value::as_str) != Some("null"));
        if let [Value::Object(only)] = branches.as_slice() {
            let only = only.clone();
            fields.remove("anyOf");
            fields.extend(only);
        }
    }
}
