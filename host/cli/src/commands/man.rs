//! `man`: the manual pages, for packages.

use super::OK;
use crate::args::Args;
use anyhow::Context as _;
use clap::CommandFactory as _;
use std::path::Path;

pub fn run(dir: &Path) -> anyhow::Result<u8> {
    std::fs::create_dir_all(dir).with_context(|| format!("can't make the folder {}", dir.display()))?;
    clap_mangen::generate_to(Args::command(), dir)
        .with_context(|| format!("can't write to {}", dir.display()))?;
    Ok(OK)
}
