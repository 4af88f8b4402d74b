//! The JSON Schema of the file, for editors and forms. It comes from the structs that read the file, so it can't differ from them.

use schemars::SchemaGenerator;
use serde_json::Value;

use super::file::File;

pub fn schema() -> Value {
    SchemaGenerator::default().into_root_schema_for::<File>().to_value()
}

/// As `larder schema` prints it.
pub fn schema_text() -> String {
    format!("{:#}\n", schema())
}
