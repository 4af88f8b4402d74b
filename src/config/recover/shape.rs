//! Lists where tables belong. Serde's derived structs take a list for a table and fill the fields in order, which nobody means
//! and which would lose settings in silence. The schema tells where tables belong.

use std::ops::Range;

use serde_json::Value;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::join;
use crate::config::schema::schema;

type Fault = (Range<usize>, (String, String));

pub(super) fn lists_for_tables(tree: &Spanned<DeTable<'_>>) -> Vec<Fault> {
    let schema = schema();
    let mut faults = Vec::new();
    judge_table(tree.get_ref(), &schema, &schema, "", &mut faults);
    faults
}

fn judge_table(table: &DeTable<'_>, node: &Value, root: &Value, path: &str, faults: &mut Vec<Fault>) {
    let Some(properties) = node.get("properties") else {
        return;
    };
    for (key, value) in table {
        if let Some(property) = properties.get(&**key.get_ref()) {
            judge(value, resolve(property, root), root, &join(path, key.get_ref()), faults);
        }
    }
}

fn judge(value: &Spanned<DeValue<'_>>, node: &Value, root: &Value, path: &str, faults: &mut Vec<Fault>) {
    match value.get_ref() {
        DeValue::Table(table) => judge_table(table, node, root, path, faults),
        DeValue::Array(_) if node.get("properties").is_some() => {
            let help = format!("it stands once: write [{path}] with single brackets, or {{ key = value }}");
            faults.push((value.span(), ("expected a table, found a list".to_owned(), help)));
        }
        DeValue::Array(array) => {
            let Some(items) = node.get("items") else { return };
            let items = resolve(items, root);
            for element in array {
                judge(element, items, root, path, faults);
            }
        }
        _ => {}
    }
}

/// Follows a reference.
fn resolve<'a>(node: &'a Value, root: &'a Value) -> &'a Value {
    let target = node
        .get("$ref")
        .and_then(Value::as_str)
        .and_then(|target| target.strip_prefix('#'));
    target.and_then(|pointer| root.pointer(pointer)).unwrap_or(node)
}
