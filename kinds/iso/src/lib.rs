//! The component of the built-in kind `ISO`.

proxops_kind::export_kind!(proxops_artifact::Iso);
proxops_kind::small_blocks!();
