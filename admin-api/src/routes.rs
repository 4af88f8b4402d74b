//! The calls, their documents and what they share. One handler per call; every one is in the OpenAPI document because
//! the router is made from it.

mod audit;
pub(crate) mod health;
mod purges;
mod stats;
mod ui;

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::middleware;
use bytes::Bytes;
use http::Uri;
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeOwned, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
use utoipa::{IntoParams, Modify, OpenApi};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::appliance::Appliance;
use crate::audit::AuditLog;
use crate::guard::guard;
use crate::hosts::AllowedHosts;
use crate::problem::{Code, Position, Refusal};
use crate::purges::History;
use crate::tokens::Tokens;

/// What the control plane is made of.
pub struct Parts {
    pub appliance: Arc<dyn Appliance>,
    pub tokens: Tokens,
    pub audit: AuditLog,
    pub hosts: AllowedHosts,
}

impl fmt::Debug for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parts")
            .field("tokens", &self.tokens)
            .field("hosts", &self.hosts)
            .finish_non_exhaustive()
    }
}

/// What every handler can reach.
#[derive(Clone)]
pub(crate) struct App(Arc<Shared>);

struct Shared {
    parts: Parts,
    purges: History,
    started_ms: u64,
    openapi: Bytes,
}

impl App {
    pub(crate) fn appliance(&self) -> &dyn Appliance {
        &*self.0.parts.appliance
    }

    pub(crate) fn tokens(&self) -> &Tokens {
        &self.0.parts.tokens
    }

    pub(crate) fn audit(&self) -> &AuditLog {
        &self.0.parts.audit
    }

    pub(crate) fn hosts(&self) -> &AllowedHosts {
        &self.0.parts.hosts
    }

    fn purges(&self) -> &History {
        &self.0.purges
    }

    fn started_ms(&self) -> u64 {
        self.0.started_ms
    }

    fn openapi(&self) -> Bytes {
        self.0.openapi.clone()
    }
}

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Larder",
        description = "The control plane of Larder, an HTTP cache appliance. Refusals are `application/problem+json` \
                       with a stable `code`.",
        license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0")
    ),
    modifiers(&BearerToken),
    tags(
        (name = "health", description = "Is it up, and which version"),
        (name = "statistics", description = "Counters and gauges"),
        (name = "invalidation", description = "Take objects out of the cache"),
        (name = "audit", description = "Who changed what")
    )
)]
struct Document;

struct BearerToken;

impl Modify for BearerToken {
    fn modify(&self, openapi: &mut utoipa::openapi::OpenApi) {
        let scheme = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
        openapi
            .components
            .get_or_insert_default()
            .add_security_scheme("token", scheme);
    }
}

/// Every documented call. The router and the document come from this one list.
fn calls() -> OpenApiRouter<App> {
    OpenApiRouter::with_openapi(Document::openapi())
        .routes(routes!(health::healthz))
        .routes(routes!(health::readyz))
        .routes(routes!(health::version))
        .routes(routes!(health::openapi))
        .routes(routes!(stats::stats))
        .routes(routes!(stats::reset))
        .routes(routes!(stats::vhosts))
        .routes(routes!(stats::vhost))
        .routes(routes!(stats::origins))
        .routes(routes!(stats::cache))
        .routes(routes!(stats::metrics))
        .routes(routes!(purges::list, purges::create))
        .routes(routes!(purges::get))
        .routes(routes!(audit::audit))
}

/// The whole control plane, for [`crate::serve`].
pub fn router(parts: Parts) -> axum::Router {
    let openapi = Bytes::from(openapi_json());
    let app = App(Arc::new(Shared {
        parts,
        purges: History::default(),
        started_ms: now_ms(),
        openapi,
    }));
    calls()
        .split_for_parts()
        .0
        .route("/", axum::routing::get(ui::index))
        .fallback(ui::asset)
        .method_not_allowed_fallback(method_not_allowed)
        .layer(middleware::from_fn_with_state(app.clone(), guard))
        .with_state(app)
}

/// The OpenAPI 3.1 document, as `GET /api/openapi.json` answers it and `admin-api/openapi.json` holds it.
#[must_use]
pub fn openapi_json() -> String {
    let mut text = calls().into_openapi().to_pretty_json().unwrap_or_default();
    text.push('\n');
    text
}

async fn method_not_allowed(uri: Uri) -> Refusal {
    Refusal::new(
        Code::MethodNotAllowed,
        format!("the methods of {} are in the field Allow", shown(uri.path())),
    )
}

/// How many of a list are asked for.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct Page {
    /// At most so many, newest first; 1 to 1000.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
}

impl Page {
    const LIMIT_MAX: usize = 1000;

    fn limit(query: Result<axum::extract::Query<Self>, QueryRejection>) -> Result<usize, Refusal> {
        let page = query.map_err(|error| Refusal::new(Code::InvalidRequest, error.body_text()))?;
        let limit = page.limit.unwrap_or(Self::LIMIT_MAX);
        if !(1..=Self::LIMIT_MAX).contains(&limit) {
            return Err(Refusal::new(Code::InvalidRequest, "limit is 1 to 1000"));
        }
        Ok(limit)
    }
}

fn name(path: Result<axum::extract::Path<String>, PathRejection>) -> Result<String, Refusal> {
    match path {
        Ok(axum::extract::Path(name)) => Ok(name),
        Err(error) => Err(Refusal::new(Code::InvalidRequest, error.body_text())),
    }
}

/// Parses a body that the guard has read and judged by type and size.
fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, Refusal> {
    serde_json::from_slice(body)
        .map(|Object(value)| value)
        .map_err(|error| {
            let code = if error.is_data() {
                Code::InvalidBody
            } else {
                Code::InvalidJson
            };
            let position = Position {
                line: Some(error.line()),
                column: Some(error.column()),
                ..Position::default()
            };
            Refusal::new(code, error.to_string()).at(position)
        })
}

/// Takes JSON objects only: what serde derives would take an array of the members' values as well, which is not in the
/// document.
#[derive(Debug)]
struct Object<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ObjectVisitor(PhantomData))
    }
}

struct ObjectVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
    type Value = Object<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(Object)
    }
}

/// Text of a caller, short enough to be repeated to them.
fn shown(text: &str) -> String {
    let mut text = text.to_owned();
    crate::audit::truncate(&mut text, 256);
    text
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
