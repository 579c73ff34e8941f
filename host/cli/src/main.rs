//! The `proxops` command.

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

mod args;
mod ask;
mod commands;
mod open;
mod progress;
mod prompt;
mod render;
mod say;
mod signals;

use clap::Parser as _;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args = match args::Args::try_parse() {
        Ok(args) => args,
        Err(error) => {
            // Exit code 2 means "changes pending" here, so a wrong command line is 1 as any error.
            let code = u8::from(error.use_stderr());
            if let (Err(lost), 0) = (error.print(), code) {
                say::lost(lost);
            }
            return ExitCode::from(say::finish(code));
        }
    };
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            say::err!("error: the async runtime can't start: {error}");
            return ExitCode::from(1);
        }
    };
    let code = runtime.block_on(commands::run(args)).unwrap_or_else(|error| {
        say::err!("error: {}", proxops_model::text::printable(&format!("{error:#}")));
        1
    });
    runtime.shutdown_timeout(std::time::Duration::from_millis(100));
    ExitCode::from(say::finish(code))
}
