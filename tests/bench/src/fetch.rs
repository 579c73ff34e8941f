//! The least that must be done: fetching the same URLs, concurrently, and reading every body.

use anyhow::{Result, ensure};
use futures::stream::{StreamExt as _, TryStreamExt as _};
use std::time::{Duration, Instant};

/// As many at once as proxops reads.
const AT_ONCE: usize = 16;

/// Fetches all paths below `/api2/json`; the time includes setting the client up.
pub async fn all(url: &str, paths: &[String]) -> Result<Duration> {
    let started = Instant::now();
    let client = reqwest::Client::builder().http1_only().tcp_nodelay(true).no_proxy().build()?;
    let authorization = format!("PVEAPIToken={}", crate::ground::token());
    futures::stream::iter(paths)
        .map(|path| {
            let request =
                client.get(format!("{url}/api2/json{path}")).header("authorization", &authorization);
            async move {
                let response = request.send().await?;
                ensure!(response.status().is_success(), "{path}: {}", response.status());
                Ok(response.bytes().await?.len())
            }
        })
        .buffer_unordered(AT_ONCE)
        .try_collect::<Vec<usize>>()
        .await?;
    Ok(started.elapsed())
}
