//! The component of the built-in kind `DiskImage`.

proxops_kind::export_kind!(proxops_artifact::DiskImage);
proxops_kind::small_blocks!();
