//! The admin HTTP server: `/metrics`, `/healthz`, `/readyz`.
//!
//! `/healthz` says whether a restart would help (a failed metadata log, a stuck core); `/readyz` whether
//! clients should be sent here. Both answer 200 or 503 with the reasons as text.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use axum::serve::Listener;
use prometheus_client::registry::Registry;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::metrics::{self, BrokerNumbers};
use super::status::Phase;

/// Connections that are served at a time; others wait in the listener's queue.
const CONNECTIONS_MAX: usize = 64;

struct Admin {
    numbers: Arc<BrokerNumbers>,
    registry: Registry,
}

/// Serves until the runtime ends.
pub(super) async fn serve(listener: std::net::TcpListener, numbers: BrokerNumbers) {
    let numbers = Arc::new(numbers);
    let admin = Arc::new(Admin {
        registry: metrics::registry(numbers.clone()),
        numbers,
    });
    let served = async {
        listener.set_nonblocking(true)?;
        let listener = Limited {
            listener: TcpListener::from_std(listener)?,
            permits: Arc::new(Semaphore::new(CONNECTIONS_MAX)),
        };
        axum::serve(listener, router(admin)).await
    };
    if let Err(error) = served.await {
        tracing::error!(%error, "admin HTTP server ended");
    }
}

fn router(admin: Arc<Admin>) -> Router {
    Router::new()
        .route("/metrics", get(show_metrics))
        .route("/healthz", get(show_health))
        .route("/readyz", get(show_readiness))
        .fallback(|| async {
            (
                StatusCode::NOT_FOUND,
                "there are /metrics, /healthz and /readyz\n",
            )
        })
        .with_state(admin)
}

async fn show_metrics(State(admin): State<Arc<Admin>>) -> impl IntoResponse {
    (
        [(header::CONTENT_TYPE, metrics::CONTENT_TYPE)],
        metrics::render(&admin.registry),
    )
}

async fn show_health(State(admin): State<Arc<Admin>>) -> impl IntoResponse {
    let ailments = admin.numbers.ailments();
    let fenced = admin.numbers.fenced();
    if !ailments.is_empty() {
        return (StatusCode::SERVICE_UNAVAILABLE, ailments.join("\n") + "\n");
    }
    let text = match fenced {
        0 => "ok\n".to_owned(),
        _ => format!("ok, but {fenced} partitions are fenced and refuse appends\n"),
    };
    (StatusCode::OK, text)
}

async fn show_readiness(State(admin): State<Arc<Admin>>) -> (StatusCode, &'static str) {
    match admin.numbers.phase() {
        Phase::Ready => (StatusCode::OK, "ready\n"),
        Phase::Starting => (
            StatusCode::SERVICE_UNAVAILABLE,
            "starting: partitions are being opened\n",
        ),
        Phase::Stopping => (StatusCode::SERVICE_UNAVAILABLE, "stopping\n"),
    }
}

/// A listener that accepts no more than it has permits for.
struct Limited {
    listener: TcpListener,
    permits: Arc<Semaphore>,
}

impl Listener for Limited {
    type Io = Permitted;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Permitted, SocketAddr) {
        let permit = self
            .permits
            .clone()
            .acquire_owned()
            .await
            .expect("never closed");
        // axum's own accept waits and tries again when the system refuses a connection.
        let (stream, address) = Listener::accept(&mut self.listener).await;
        (
            Permitted {
                stream,
                _permit: permit,
            },
            address,
        )
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// A connection that returns its permit when it is closed.
struct Permitted {
    stream: TcpStream,
    _permit: OwnedSemaphorePermit,
}

impl AsyncRead for Permitted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Permitted {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
