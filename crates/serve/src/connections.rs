//! The loop that takes connections: only so many at a time, each with a limit on the time in which the
//! head of a request must come, and an end that lets open requests finish.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::ConnectInfo;
use florilegium_batch::LiveServer;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

/// The most bytes that the head of a request may have.
const HEAD_LIMIT: usize = 16 * 1024;
/// Waited when a connection cannot be accepted: too many files are open.
const PAUSE: Duration = Duration::from_millis(100);

/// Serves until `stopped` resolves and open requests have ended, or their time is over.
pub(crate) async fn serve(
    listener: TcpListener,
    router: Router,
    settings: &LiveServer,
    stopped: impl Future<Output = ()>,
) {
    let places = Arc::new(Semaphore::new(settings.connections));
    let graceful = GracefulShutdown::new();
    let mut builder = Builder::new(TokioExecutor::new()).http1_only();
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(Duration::from_secs(settings.header_seconds))
        .max_buf_size(HEAD_LIMIT);
    let mut stopped = std::pin::pin!(stopped);
    loop {
        let accepted = async {
            // Those for whom there is no place wait in the system's own queue.
            let place = places.clone().acquire_owned().await;
            (place, listener.accept().await)
        };
        let (place, accepted) = tokio::select! {
            accepted = accepted => accepted,
            () = &mut stopped => break,
        };
        let (stream, peer): (_, SocketAddr) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!("a connection could not be accepted: {error}");
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        let _ = stream.set_nodelay(true);
        let service = router.clone().layer(axum::Extension(ConnectInfo(peer)));
        let connection = builder
            .serve_connection(TokioIo::new(stream), TowerToHyperService::new(service))
            .into_owned();
        let connection = graceful.watch(connection);
        tokio::spawn(async move {
            // What goes wrong here is the other side's: a reset, a head that never came.
            if let Err(error) = connection.await {
                tracing::debug!("{error}");
            }
            drop(place);
        });
    }
    let patience = Duration::from_secs(settings.shutdown_seconds);
    if tokio::time::timeout(patience, graceful.shutdown()).await.is_err() {
        tracing::warn!("some requests were still open after {} s", patience.as_secs());
    }
}
