//! A client of the admin plane's REST interface. One connection for each call; every wait and every answer has a bound. Knows
//! how to call and what can go wrong, not what the answers mean.

use std::fmt::{self, Display, Formatter};
use std::pin::pin;
use std::str::FromStr;
use std::time::Duration;

use anyhow::Context;
use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue};
use http::{Method, Request, StatusCode, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use thiserror::Error;
use tokio::net::TcpStream;
use tokio::time::timeout;

const CONNECT_MAX: Duration = Duration::from_secs(5);
/// A purge of many objects may take its time.
const CALL_MAX: Duration = Duration::from_secs(60);
/// Statistics of thousands of vhosts are some MiB.
const ANSWER_BYTES_MAX: usize = 64 << 20;
const PORT_DEFAULT: u16 = 80;

/// Host and port of an admin plane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    host: String,
    port: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{0}` is not the address of an admin plane; write it as http://127.0.0.1:9090")]
pub struct BadEndpoint(String);

impl FromStr for Endpoint {
    type Err = BadEndpoint;

    fn from_str(text: &str) -> Result<Self, BadEndpoint> {
        let bad = || BadEndpoint(text.to_owned());
        let uri: Uri = text.parse().map_err(|_| bad())?;
        let authority = uri.authority().ok_or_else(bad)?;
        let is_plain = uri.scheme_str() == Some("http") && uri.query().is_none() && matches!(uri.path(), "" | "/");
        if !is_plain || authority.as_str().contains('@') || authority.host().is_empty() {
            return Err(bad());
        }
        // `1.2.3.4:` and ports out of range parse as an authority without port.
        let has_bad_port = authority.port().is_none() && authority.as_str() != authority.host();
        if has_bad_port {
            return Err(bad());
        }
        Ok(Self {
            host: authority.host().to_owned(),
            port: authority.port_u16().unwrap_or(PORT_DEFAULT),
        })
    }
}

impl Display for Endpoint {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

#[derive(Debug, Error)]
pub enum CallError {
    #[error("cannot connect to the admin plane at {endpoint}")]
    Connect {
        endpoint: Endpoint,
        #[source]
        source: std::io::Error,
    },
    #[error("the admin plane at {endpoint} did not answer in {}s", .after.as_secs())]
    Late { endpoint: Endpoint, after: Duration },
    #[error("what listens at {endpoint} does not speak HTTP")]
    Protocol {
        endpoint: Endpoint,
        #[source]
        source: hyper::Error,
    },
    #[error("the answer of {endpoint} broke off or is too large")]
    Body {
        endpoint: Endpoint,
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    #[error("the answer of {endpoint} is not that of an admin plane (status {status})")]
    Foreign { endpoint: Endpoint, status: StatusCode },
    #[error("{0}")]
    Refused(Problem),
}

/// An answer of RFC 9457.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    pub status: StatusCode,
    /// Stable, for programs.
    pub code: String,
    pub title: String,
    pub detail: String,
}

impl Display for Problem {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let title = if self.title.is_empty() { "refused" } else { &self.title };
        f.write_str(title)?;
        if !self.detail.is_empty() {
            write!(f, ": {}", self.detail)?;
        }
        write!(f, " (status {}", self.status.as_u16())?;
        if !self.code.is_empty() {
            write!(f, ", {}", self.code)?;
        }
        f.write_str(")")
    }
}

impl CallError {
    /// What the user can do about it.
    pub fn help(&self) -> Option<String> {
        let help = match self {
            Self::Connect { .. } => {
                "is larder running, and is this the address of `listen` under [admin]? --admin URL or LARDER_ADMIN set it"
            }
            Self::Refused(problem) if problem.status == StatusCode::UNAUTHORIZED => {
                "the token is in admin.token in state_dir: give it with --config FILE, --token-file FILE, --token TOKEN or \
                 LARDER_ADMIN_TOKEN"
            }
            Self::Refused(problem) if problem.status == StatusCode::FORBIDDEN => {
                "the token is known, but its role does not allow this"
            }
            Self::Foreign { .. } | Self::Protocol { .. } => {
                "this may be the port of the data plane: the admin plane listens at `listen` under [admin]"
            }
            _ => return None,
        };
        Some(help.to_owned())
    }
}

/// Calls one admin plane with one token.
#[derive(Debug)]
pub struct Client {
    endpoint: Endpoint,
    authorization: Option<HeaderValue>,
}

impl Client {
    pub fn new(endpoint: Endpoint, token: Option<&str>) -> anyhow::Result<Self> {
        let bearer = |token: &str| {
            let value = HeaderValue::from_str(&format!("Bearer {token}"));
            value
                .context("the token has characters that no token has")
                .map(|mut value| {
                    value.set_sensitive(true);
                    value
                })
        };
        Ok(Self {
            endpoint,
            authorization: token.map(bearer).transpose()?,
        })
    }

    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    pub async fn purge_url(&self, url: &str) -> Result<Value, CallError> {
        let body = serde_json::json!({ "match": { "url": url } });
        self.call(Method::POST, "/api/v1/purges", Some(&body)).await
    }

    pub async fn stats(&self) -> Result<Value, CallError> {
        self.call(Method::GET, "/api/v1/stats", None).await
    }

    pub async fn vhosts(&self) -> Result<Value, CallError> {
        self.call(Method::GET, "/api/v1/vhosts", None).await
    }

    /// The statistics as of the reset.
    pub async fn reset_stats(&self) -> Result<Value, CallError> {
        let body = serde_json::json!({ "scope": "all" });
        self.call(Method::POST, "/api/v1/stats/reset", Some(&body)).await
    }

    async fn call(&self, method: Method, path: &'static str, body: Option<&Value>) -> Result<Value, CallError> {
        let late = |after| CallError::Late {
            endpoint: self.endpoint.clone(),
            after,
        };
        let stream = timeout(CONNECT_MAX, self.connect())
            .await
            .map_err(|_| late(CONNECT_MAX))??;
        let request = self.request(method, path, body);
        let exchange = timeout(CALL_MAX, self.exchange(stream, request)).await;
        let (status, answer) = exchange.map_err(|_| late(CALL_MAX))??;
        self.judge(status, &answer)
    }

    async fn connect(&self) -> Result<TcpStream, CallError> {
        let host = self.endpoint.host.trim_matches(['[', ']']);
        let connected = TcpStream::connect((host, self.endpoint.port)).await;
        connected.map_err(|source| CallError::Connect {
            endpoint: self.endpoint.clone(),
            source,
        })
    }

    fn request(&self, method: Method, path: &'static str, body: Option<&Value>) -> Request<Full<Bytes>> {
        let bytes = body.map_or_else(Bytes::new, |body| Bytes::from(body.to_string()));
        let mut request = Request::new(Full::new(bytes));
        *request.method_mut() = method;
        *request.uri_mut() = Uri::from_static(path);
        let fields = request.headers_mut();
        // An endpoint was parsed from a URI, so it is a field value.
        if let Ok(host) = HeaderValue::from_str(&self.endpoint.to_string()) {
            fields.insert(HOST, host);
        }
        if body.is_some() {
            fields.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        if let Some(authorization) = &self.authorization {
            fields.insert(AUTHORIZATION, authorization.clone());
        }
        request
    }

    async fn exchange(
        &self,
        stream: TcpStream,
        request: Request<Full<Bytes>>,
    ) -> Result<(StatusCode, Bytes), CallError> {
        let protocol = |source| CallError::Protocol {
            endpoint: self.endpoint.clone(),
            source,
        };
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(protocol)?;
        let mut connection = pin!(connection);
        let mut answer = pin!(async {
            let response = sender.send_request(request).await.map_err(protocol)?;
            let status = response.status();
            let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await;
            let body = body.map_err(|source| CallError::Body {
                endpoint: self.endpoint.clone(),
                source,
            })?;
            Ok((status, body.to_bytes()))
        });
        // The connection moves the bytes. Where it ends first, the answer knows how.
        tokio::select! {
            answer = &mut answer => answer,
            _ = &mut connection => answer.await,
        }
    }

    fn judge(&self, status: StatusCode, answer: &[u8]) -> Result<Value, CallError> {
        let parsed = serde_json::from_slice::<Value>(answer).ok();
        match parsed {
            Some(value) if status.is_success() => Ok(value),
            Some(value) if value.get("status").is_some() || value.get("code").is_some() => {
                let text = |key| value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
                Err(CallError::Refused(Problem {
                    status,
                    code: text("code"),
                    title: text("title"),
                    detail: text("detail"),
                }))
            }
            _ => Err(CallError::Foreign {
                endpoint: self.endpoint.clone(),
                status,
            }),
        }
    }
}

#[cfg(test)]
mod tests;
