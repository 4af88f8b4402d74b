//! Who changed what, for those who may ask.

use axum::Json;
use axum::extract::State;
use axum::extract::rejection::QueryRejection;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{App, Page};
use crate::audit::AuditEntry;
use crate::problem::{Guarded, Refusal};

/// The last lines of the audit log.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct Audit {
    /// Newest first; at most 1000.
    entries: Vec<AuditEntry>,
}

/// The last lines of the audit log
#[utoipa::path(get, path = "/api/v1/audit", tag = "audit", operation_id = "list_audit",
    security(("token" = [])), params(Page), responses(
    (status = 200, description = "Newest first", body = Audit), Guarded,
))]
pub(crate) async fn audit(
    State(app): State<App>,
    query: Result<axum::extract::Query<Page>, QueryRejection>,
) -> Result<Json<Audit>, Refusal> {
    Ok(Json(Audit {
        entries: app.audit().latest(Page::limit(query)?),
    }))
}
