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
mod signals;

use clap::Parser as _;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args = match args::Args::try_parse() {
        Ok(args) => args,
        Err(error) => {
            // Exit code 2 means "changes pending" here, so a wrong command line is 1 as any error.
            let code = u8::from(error.use_stderr());
            let _ = error.print();
            return ExitCode::from(code);
        }
    };
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("error: the async runtime can't start: {error}");
            return ExitCode::from(1);
        }
    };
    let code = runtime.block_on(commands::run(args)).unwrap_or_else(|error| {
        // A reader that went away, as in `proxops diff | head`, is not a failure.
        if error.chain().any(|e| {
            e.downcast_ref::<std::io::Error>().is_some_and(|e| e.kind() == std::io::ErrorKind::BrokenPipe)
        }) {
            return 0;
        }
        eprintln!("error: {}", proxops_model::text::printable(&format!("{error:#}")));
        1
    });
    runtime.shutdown_timeout(std::time::Duration::from_millis(100));
    ExitCode::from(code)
}
